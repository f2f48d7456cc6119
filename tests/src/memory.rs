//! A global allocator that counts, thread by thread, what a piece of code asks for.

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
}

fn count(bytes: usize) {
    REQUESTED_BYTES.set(REQUESTED_BYTES.get() + bytes as u64);
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
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
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
