//! Integration tests, linked once: golden fixtures and the command line.

mod classics;
mod cli;
mod data;
mod layout;
mod metrics;
