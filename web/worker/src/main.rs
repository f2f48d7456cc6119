//! The engine inside a browser's worker.

fn main() {}
