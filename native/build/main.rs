//! What the build adds to the sources: the revision, and the checkpoints that the binary carries.

mod revision;
mod shipped;

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build");
    revision::tell();
    shipped::list()
}
