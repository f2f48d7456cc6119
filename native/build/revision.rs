//! The source revision, as `CWM_GIT_REVISION`; a build without git goes on without one.

use std::{path::Path, process::Command};

/// Tells cargo the revision, and when to look again.
pub fn tell() {
    println!("cargo::rerun-if-env-changed=CWM_GIT_REVISION");
    if std::env::var_os("CWM_GIT_REVISION").is_some() {
        return;
    }
    // A source tree inside somebody else's repository is not that repository's revision.
    let ours = git(&["rev-parse", "--show-toplevel"]).is_some_and(|top| {
        let parent = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        parent.and_then(|p| p.canonicalize().ok()) == Path::new(&top).canonicalize().ok()
    });
    if !ours {
        return;
    }
    let Some(revision) = git(&["rev-parse", "--short=10", "HEAD"]) else { return };
    println!("cargo::rustc-env=CWM_GIT_REVISION={revision}");
    // The log grows with every commit and checkout. Without one, HEAD and the packed branches are the best signs.
    for name in ["logs/HEAD", "HEAD", "packed-refs"] {
        // A path that does not exist would run this script at every build.
        if let Some(path) = git(&["rev-parse", "--git-path", name])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
            if name == "logs/HEAD" {
                break;
            }
        }
    }
}

/// What a git command prints, if git is there and agrees. Build scripts run in the package's folder.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_string())
}
