//! The page as a web server gives it out: static files with the right types, tags and rules.

mod answer;
mod site;

pub use answer::{CONTENT_SECURITY_POLICY, serve};
pub use site::Site;
