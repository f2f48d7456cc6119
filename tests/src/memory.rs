//! A global allocator that counts, thread by thread, what a piece of code asks for and what it holds.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// The system's allocator with a counter. A test binary opts in with `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator;

thread_local! {
    // No destructor and a constant start: safe to touch at any time in a thread's life.
    static REQUESTED_BYTES: Cell<u64> = const { Cell::new(0) };
    /// Asked for less given back; negative where a thread frees what others asked for.
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    REQUESTED_BYTES.set(REQUESTED_BYTES.get() + bytes as u64);
    HELD_BYTES.set(HELD_BYTES.get() + bytes as i64);
    PEAK_BYTES.set(PEAK_BYTES.get().max(HELD_BYTES.get()));
}

fn give_back(bytes: usize) {
    HELD_BYTES.set(HELD_BYTES.get() - bytes as i64);
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        give_back(layout.size());
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        give_back(layout.size());
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// What `f` returns, and the bytes that this thread asked for meanwhile, freed or not: an upper bound of its peak.
/// Zero unless the binary uses [`CountingAllocator`].
pub fn requested_by<T>(f: impl FnOnce() -> T) -> (T, u64) {
    let before = REQUESTED_BYTES.get();
    let result = f();
    (result, REQUESTED_BYTES.get() - before)
}

/// What `f` returns, and the most bytes that this thread held meanwhile on top of what it held before.
/// Zero unless the binary uses [`CountingAllocator`].
pub fn peak_of<T>(f: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD_BYTES.get();
    PEAK_BYTES.set(before);
    let result = f();
    (result, (PEAK_BYTES.get() - before).max(0) as u64)
}
