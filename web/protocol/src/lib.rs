//! What the page's main thread and its workers say to each other.
//!
//! Messages are JSON texts; files travel beside them. The main thread posts `{ text, files }` with `text` a [`Request`]
//! and `files` a list of `File`, `Blob` or `ArrayBuffer` in the order that the request's documentation names. The
//! worker posts a text, a [`Reply`], for each thing it has to say. JavaScript only carries; both ends are Rust.
//!
//! # Requests and their replies
//!
//! Every request has an `id` that the main thread chooses (from 1, never twice). Every request is answered by any
//! number of passing replies with its id and exactly one last one ([`Say::is_last`]).
//!
//! | [`Ask`] | files | passing | last |
//! |---|---|---|---|
//! | `open` | none for a shipped checkpoint; else the safetensors file and, where there is one, config.json | `phase` | `opened`, `failed` |
//! | `predict` | none | `step`, in order | `predicted`, `superseded`, `failed` |
//! | `grade` | the PGN for `pgn` games, else none | `phase`, `grading`, `notice` | `graded` (also when cancelled), `failed` |
//! | `cancel` | none | none | `cancelled` |
//!
//! Replies with id 0 answer nobody: `ready`, when the worker is up (again, with another backend, when the GPU's worker
//! takes over), `notice`, when something happened that the user should know (the GPU was lost and the CPU goes on, say),
//! and `failed`, when the worker has crashed: it is to be started anew.
//!
//! `open` replaces the checkpoint only when it succeeds. `predict` supersedes an unfinished `predict`. One `grade` runs
//! at a time; a `predict` meanwhile is answered between two of its batches.

mod ask;
mod say;

pub use ask::{Ask, CheckpointSource, GameSet, GradeJob, Request};
pub use say::{
    Adapter, Backend, BackendKind, Fault, ModelFacts, Phase, Reply, Say, StepAnswer, Timing,
    WorstGame, code,
};
