//! Scalars in TensorBoard's event format: length-prefixed protobuf records with masked CRC-32C.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// An open event file; every scalar is on disk when [`EventFile::scalar`] returns.
#[derive(Debug)]
pub struct EventFile(File);

impl EventFile {
    /// Opens `dir/events.out.tfevents.<secs>.cwm`, new or to go on with.
    pub fn open(dir: &Path, start_secs: u64) -> io::Result<Self> {
        let path = dir.join(format!("events.out.tfevents.{start_secs}.cwm"));
        let new = !path.exists();
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut events = EventFile(file);
        if new {
            let mut event = Vec::new();
            double(&mut event, 1, start_secs as f64);
            bytes(&mut event, 3, b"brain.Event:2");
            events.record(&event)?;
        }
        Ok(events)
    }

    /// Appends one scalar at a step.
    pub fn scalar(&mut self, wall_secs: f64, step: u64, tag: &str, value: f32) -> io::Result<()> {
        let mut simple = Vec::new();
        bytes(&mut simple, 1, tag.as_bytes());
        key(&mut simple, 2, 5);
        simple.extend_from_slice(&value.to_le_bytes());
        let mut summary = Vec::new();
        bytes(&mut summary, 1, &simple);
        let mut event = Vec::new();
        double(&mut event, 1, wall_secs);
        key(&mut event, 2, 0);
        varint(&mut event, step);
        bytes(&mut event, 5, &summary);
        self.record(&event)
    }

    fn record(&mut self, event: &[u8]) -> io::Result<()> {
        let length = (event.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(event.len() + 16);
        record.extend_from_slice(&length);
        record.extend_from_slice(&masked_crc(&length).to_le_bytes());
        record.extend_from_slice(event);
        record.extend_from_slice(&masked_crc(event).to_le_bytes());
        self.0.write_all(&record)
    }
}

fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn key(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    varint(out, field << 3 | wire_type);
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    key(out, field, 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    key(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_frame_and_checksum_as_tensorboard_reads_them() {
        let dir = tempfile::tempdir().unwrap();
        let mut events = EventFile::open(dir.path(), 1).unwrap();
        events.scalar(2.0, 300, "train/loss", 0.5).unwrap();
        drop(EventFile::open(dir.path(), 1).unwrap());
        let file = std::fs::read(dir.path().join("events.out.tfevents.1.cwm")).unwrap();
        let mut rest = &file[..];
        let mut events = Vec::new();
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            let event = &rest[12..12 + length];
            let crc = u32::from_le_bytes(rest[12 + length..16 + length].try_into().unwrap());
            assert_eq!(crc, masked_crc(event));
            events.push(event.to_vec());
            rest = &rest[16 + length..];
        }
        assert_eq!(events.len(), 2);
        assert!(events[0].ends_with(b"brain.Event:2"));
        assert!(events[1].ends_with(&0.5f32.to_le_bytes()));
        assert!(events[1].windows(10).any(|w| w == b"train/loss"));
        // Field 2 (step), varint 300.
        assert!(events[1].windows(3).any(|w| w == [0x10, 0xac, 0x02]));
    }
}
