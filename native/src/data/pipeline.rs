//! Work on blocks in parallel with the results in the blocks' order, in bounded memory.
//!
//! One thread makes blocks, some work on them, and the caller's thread takes the results: a block's place in the queue
//! of results is reserved before it is handed out, so order needs no sorting and at most `depth` blocks are alive.

use std::{ops::ControlFlow, thread, time::Duration};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::interrupt::Interrupt;

/// How many threads work, and how many blocks may wait.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Working threads, at least one.
    pub threads: usize,
    /// Blocks alive at once.
    pub depth: usize,
}

impl Shape {
    /// As many threads as asked for, or as the machine has cores.
    pub fn new(threads: Option<usize>) -> Shape {
        let threads = threads
            .or_else(|| thread::available_parallelism().ok().map(usize::from))
            .unwrap_or(1)
            .max(1);
        Shape { threads, depth: 2 * threads + 2 }
    }
}

/// Runs `work` over `blocks` and calls `sink` with each result, in order; stops when `sink` breaks, at the first error of
/// either, or at an interrupt.
///
/// The threads are not waited for after an early stop: a reader that hangs in a pipe must not keep the process.
///
/// # Errors
/// The first error of `blocks` or `sink`.
pub fn run<B, R, I, W>(
    shape: Shape,
    blocks: I,
    work: W,
    interrupt: &Interrupt,
    mut sink: impl FnMut(R) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<()>
where
    B: Send + 'static,
    R: Send + 'static,
    I: Iterator<Item = anyhow::Result<B>> + Send + 'static,
    W: Fn(B) -> R + Clone + Send + 'static,
{
    let (jobs_in, jobs_out) = bounded::<(B, Sender<R>)>(shape.depth);
    let (places_in, places_out) = bounded::<anyhow::Result<Receiver<R>>>(shape.depth);
    thread::spawn(move || {
        for block in blocks {
            let (place, job) = match block {
                Ok(block) => {
                    let (result_in, result_out) = bounded(1);
                    (Ok(result_out), Some((block, result_in)))
                }
                Err(e) => (Err(e), None),
            };
            // A closed channel means that the caller gave up.
            if places_in.send(place).is_err() {
                return;
            }
            let handed_out = job.is_some_and(|job| jobs_in.send(job).is_ok());
            if !handed_out {
                return;
            }
        }
    });
    for _ in 0..shape.threads {
        let (jobs, work) = (jobs_out.clone(), work.clone());
        thread::spawn(move || {
            for (block, result) in jobs {
                // The caller may have given up; then nobody wants the result.
                let _ = result.send(work(block));
            }
        });
    }
    drop(jobs_out);
    loop {
        interrupt.check()?;
        // Nothing may come for long where the input is a pipe; signals are heeded meanwhile.
        let place = match places_out.recv_timeout(Duration::from_millis(100)) {
            Ok(place) => place?,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let result = place.recv().map_err(|_| anyhow::anyhow!("a working thread died"))?;
        if sink(result)?.is_break() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_whatever_the_threads() {
        for threads in [1, 3, 8] {
            let mut seen = Vec::new();
            let work = |n: u64| {
                // The first of every few is the slowest.
                std::hint::black_box((0..u64::from(n.is_multiple_of(4)) * 20_000).sum::<u64>());
                n * n
            };
            run(Shape::new(Some(threads)), (0..200).map(Ok), work, &Interrupt::default(), |n| {
                seen.push(n);
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
            assert_eq!(seen, (0..200).map(|n| n * n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn errors_arrive_after_the_results_before_them() {
        let blocks = (0..5).map(|n| if n < 3 { Ok(n) } else { anyhow::bail!("broken at {n}") });
        let mut seen = Vec::new();
        let error = run(
            Shape::new(Some(2)),
            blocks,
            |n| n,
            &Interrupt::default(),
            |n| {
                seen.push(n);
                Ok(ControlFlow::Continue(()))
            },
        )
        .unwrap_err();
        assert_eq!((seen, error.to_string()), (vec![0, 1, 2], "broken at 3".to_string()));
    }

    #[test]
    fn a_sink_can_stop_the_work() {
        let endless = |stop: fn() -> anyhow::Result<ControlFlow<()>>| {
            run(
                Shape::new(Some(2)),
                (0..).map(Ok),
                |n| n,
                &Interrupt::default(),
                |n: u64| if n == 10 { stop() } else { Ok(ControlFlow::Continue(())) },
            )
        };
        assert!(endless(|| Ok(ControlFlow::Break(()))).is_ok());
        let error = endless(|| anyhow::bail!("enough"));
        assert_eq!(error.unwrap_err().to_string(), "enough");
    }
}
