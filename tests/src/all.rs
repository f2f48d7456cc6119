//! Integration tests, linked once: golden fixtures and the command line.

mod classics;
mod cli;
mod layout;
mod metrics;
