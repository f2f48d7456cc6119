//! Integration tests, linked once: golden fixtures and the command line.

mod bad_input;
mod baselines;
mod budgets;
mod checkpoint;
mod checkpoint_cli;
mod classics;
mod cli;
mod close_up;
mod data;
mod eval_golden;
mod evaluate;
mod feedback;
mod forms;
mod fuzz;
mod golden;
mod help;
mod layout;
mod metrics;
mod shipped;
mod slice;
mod torch_faults;
mod torch_golden;
mod torch_import;
mod train;
mod trainer;
mod transition;
mod transition_plain;

/// Some tests hold code to how much memory it asks for.
#[global_allocator]
static ALLOCATOR: cwm_tests::memory::CountingAllocator = cwm_tests::memory::CountingAllocator;
