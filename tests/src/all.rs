//! Integration tests, linked once: golden fixtures and the command line.

mod bad_input;
mod baselines;
mod classics;
mod cli;
mod data;
mod eval_golden;
mod evaluate;
mod layout;
mod metrics;
mod trainer;
mod transformer;
