//! Writes that happen whole or not at all: temporary file, fsync, rename.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;

/// Replaces the file at `path` by `bytes`; after a crash the old or the new content is there, never a part.
pub fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    write_with(path, |file| file.write_all(bytes))
}

/// Like [`write()`], with the content streamed by `fill`.
pub fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> anyhow::Result<()> {
    let parent = parent_of(path);
    let attempt = || -> io::Result<()> {
        fs::create_dir_all(&parent)?;
        let mut temp = tempfile::Builder::new().prefix(".cwm-").tempfile_in(&parent)?;
        fill(temp.as_file_mut())?;
        temp.as_file().sync_all()?;
        set_default_permissions(temp.as_file())?;
        temp.persist(path).map_err(|e| e.error)?;
        sync_directory(&parent)
    };
    attempt().with_context(|| format!("cannot write `{}`", path.display()))
}

/// Makes a directory by letting `fill` write into a temporary sibling and renaming it to `path`, which must not exist.
pub fn directory(
    path: &Path,
    fill: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let parent = parent_of(path);
    let context = || format!("cannot write `{}`", path.display());
    fs::create_dir_all(&parent).with_context(context)?;
    let temp =
        tempfile::Builder::new().prefix(".cwm-").tempdir_in(&parent).with_context(context)?;
    fill(temp.path())?;
    for entry in fs::read_dir(temp.path()).with_context(context)? {
        let entry = entry.with_context(context)?;
        if entry.file_type().with_context(context)?.is_file() {
            File::open(entry.path()).and_then(|f| f.sync_all()).with_context(context)?;
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o755))
            .with_context(context)?;
    }
    fs::rename(temp.path(), path).with_context(context)?;
    // The directory now has its final name: there is nothing left to clean up.
    let _ = temp.keep();
    sync_directory(&parent).with_context(context)
}

fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Temporary files are private; results should be as readable as any other file.
fn set_default_permissions(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// Makes a rename durable; not every file system can sync a directory, and none loses the old name by that.
fn sync_directory(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    let _ = File::open(path)?.sync_all();
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_keeps_the_old_file_and_leaves_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        write(&path, b"old").unwrap();
        let failed = write_with(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(format!("{:#}", failed.unwrap_err()).contains("disk full"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_directory_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        assert!(directory(&path, |_| anyhow::bail!("no")).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        directory(&path, |d| write(&d.join("x"), b"1")).unwrap();
        assert_eq!(fs::read(path.join("x")).unwrap(), b"1");
    }
}
