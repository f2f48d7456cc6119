//! `cwm serve`: the page, for a browser on this machine.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{
    exit::{Exit, Failure},
    output,
    progress::Progress,
    serve::{Site, serve},
};

const EXAMPLES: &str = "\
Examples:
  cwm serve --open
  cwm serve --port 0 --dist web/dist
  cwm serve --public-url /chess/

`bash web/build` builds the page. --public-url shows it as it will be below a path of another server.";

/// Arguments of `cwm serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The built page
    #[arg(long, value_name = "DIR", default_value = "web/dist")]
    dist: PathBuf,

    /// The port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    port: u16,

    /// The address to listen on; the default is reached from this machine alone
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,

    /// The path that the page is served under
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = prefix)]
    public_url: String,

    /// Open the page in the browser
    #[arg(long)]
    open: bool,
}

fn prefix(text: &str) -> Result<String, String> {
    let inner = text.trim_matches('/');
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    if !text.starts_with('/') || !inner.bytes().all(fine) || inner.contains("//") {
        return Err("expected a path such as `/` or `/chess/`".to_string());
    }
    Ok(if inner.is_empty() { "/".to_string() } else { format!("/{inner}/") })
}

/// Runs `cwm serve`, until it is stopped from outside.
///
/// # Errors
/// If there is no page, or the port is taken.
pub fn run(args: Args, progress: &Progress) -> anyhow::Result<Exit> {
    let site = Site::read(&args.dist)?;
    let files = site.files();
    let address = SocketAddr::new(args.address, args.port);
    let served = serve(site, address, &args.public_url, |address| {
        let url = format!("http://{address}{}", args.public_url);
        output::print(format!("{url}\n"))?;
        progress
            .note(&format!("serving {files} files from `{}`; Ctrl-C ends it", args.dist.display()));
        if args.open && !open(&url) {
            progress.warn("no browser could be started: open the address yourself");
        }
        Ok(())
    });
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(error) if error.downcast_ref::<std::io::Error>().is_some() => {
            Err(Failure::usage(format!("{error:#}")).hint("--port 0 takes a free port").into())
        }
        Err(error) => Err(error),
    }
}

/// Asks the system for a browser; whether somebody answered.
fn open(url: &str) -> bool {
    let candidates: &[(&str, &[&str])] = if cfg!(target_os = "macos") {
        &[("open", &[])]
    } else if cfg!(windows) {
        &[("cmd", &["/C", "start", ""])]
    } else {
        &[("xdg-open", &[]), ("wslview", &[])]
    };
    candidates.iter().any(|(program, arguments)| {
        let mut command = Command::new(program);
        command.args(*arguments).arg(url);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_and_end_with_a_slash() {
        for (text, path) in [("/", "/"), ("/a", "/a/"), ("/a/b/", "/a/b/")] {
            assert_eq!(prefix(text).as_deref(), Ok(path));
        }
        assert!(
            ["", "a/", "/a//b/", "/a b/", "https://x/"].iter().all(|text| prefix(text).is_err())
        );
    }
}
