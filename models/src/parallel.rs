//! Work on all cores where there are threads, in order where there are none. Results never depend on which.

/// Applies `f` to each item; results come in the items' order.
#[cfg(feature = "threads")]
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
    // One item at a time: items are few and large.
    items.into_par_iter().with_max_len(1).map(f).collect()
}

/// Applies `f` to each item; results come in the items' order.
#[cfg(not(feature = "threads"))]
pub(crate) fn map<T, R>(items: Vec<T>, f: impl Fn(T) -> R) -> Vec<R> {
    items.into_iter().map(f).collect()
}
