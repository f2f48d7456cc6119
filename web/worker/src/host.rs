//! What the engine needs from where it runs: a voice, a clock, a pause, and files.

use std::{cell::RefCell, future::Future, io, rc::Rc};

use cwm_protocol::{Fault, Say};

/// The engine's surroundings: a browser's worker, or a test.
pub trait Host: Clone + 'static {
    /// Says something about a request (0 for none).
    fn say(&self, id: u32, say: Say);

    /// Milliseconds since some moment.
    fn now_millis(&self) -> f64;

    /// Lets messages in that have come meanwhile.
    fn pause(&self) -> impl Future<Output = ()>;

    /// A file of the page itself; `progress` hears bytes done and, if known, bytes in all.
    fn fetch(
        &self,
        path: &str,
        progress: impl Fn(u64, Option<u64>) + 'static,
    ) -> impl Future<Output = Result<Vec<u8>, Fault>>;
}

/// A file that came with a request.
pub trait InputFile {
    /// Its length.
    fn size_bytes(&self) -> u64;

    /// Its bytes from `at` on, as many as fit into `buffer` or are left.
    ///
    /// # Errors
    /// If the file is gone or was changed.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// Bytes at hand.
impl InputFile for Vec<u8> {
    fn size_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

/// The first `limit_bytes` bytes of a file, or all of it.
pub(crate) fn read_up_to(file: &dyn InputFile, limit_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.size_bytes().min(limit_bytes) as usize];
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(done as u64, &mut bytes[done..])? {
            0 => break,
            n => done += n,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

/// Reads a file from its start, and tells how far it has come.
pub(crate) struct Reader<'f> {
    pub(crate) file: &'f dyn InputFile,
    pub(crate) at: Rc<RefCell<u64>>,
}

impl io::Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut at = self.at.borrow_mut();
        let n = self.file.read_at(*at, buffer)?;
        *at += n as u64;
        Ok(n)
    }
}
