//! Requests to files, with the headers that keep the page safe and fresh.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Method, Response, StatusCode, Uri, header},
};

use super::site::{Asset, Site};

/// What the page may do: load its own files, compile its own wasm, start its own workers. Nothing leaves for elsewhere.
/// The same rules stand in the page itself, for other servers.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; \
     style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; \
     manifest-src 'self'; base-uri 'none'; form-action 'none'";

/// Serves the page under `prefix` (`/`, or a path that begins and ends with it) until the process ends. `ready` hears
/// the address once it is open.
///
/// # Errors
/// If the address cannot be opened.
pub fn serve(
    site: Site,
    address: SocketAddr,
    prefix: &str,
    ready: impl FnOnce(SocketAddr) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        ready(listener.local_addr()?)?;
        let (site, prefix) = (Arc::new(site), Arc::<str>::from(prefix));
        let app = Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap| {
            let answer = answer(&site, &prefix, &method, uri.path(), &headers);
            async move { answer }
        });
        axum::serve(listener, app).await.context("serving the page")
    })
}

fn answer(
    site: &Site,
    prefix: &str,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Response<Body> {
    if method != Method::GET && method != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    // Without the final slash, the page's relative links would lead elsewhere.
    if path.len() + 1 == prefix.len() && prefix.starts_with(path) {
        let mut response = plain(StatusCode::PERMANENT_REDIRECT, "");
        if let Ok(location) = prefix.parse() {
            response.headers_mut().insert(header::LOCATION, location);
        }
        return response;
    }
    match path.strip_prefix(prefix).and_then(|path| site.get(path)) {
        Some(asset) => file(asset, method == Method::HEAD, headers),
        None => plain(StatusCode::NOT_FOUND, "no such file\n"),
    }
}

fn file(asset: &Asset, head_only: bool, headers: &HeaderMap) -> Response<Body> {
    let has = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim() == word)
    };
    let brotli = asset.brotli.as_ref().filter(|_| {
        let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        accepted.is_some_and(accepts_brotli)
    });
    // The compressed form is another sequence of bytes, so it has a tag of its own.
    let tag = format!("\"{}{}\"", asset.tag, if brotli.is_some() { "-br" } else { "" });
    let unchanged =
        has(header::IF_NONE_MATCH, &tag) || has(header::IF_NONE_MATCH, &format!("W/{tag}"));
    let mut response = Response::builder()
        .header(header::ETAG, &tag)
        // Kept, but asked for again: names do not change when contents do.
        .header(header::CACHE_CONTROL, "no-cache")
        .header(header::VARY, "accept-encoding")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::REFERRER_POLICY, "no-referrer")
        .header(
            header::CONTENT_SECURITY_POLICY,
            format!("{CONTENT_SECURITY_POLICY}; frame-ancestors 'none'"),
        );
    let body = if unchanged {
        response = response.status(StatusCode::NOT_MODIFIED);
        Body::empty()
    } else {
        let bytes = brotli.unwrap_or(&asset.plain);
        if brotli.is_some() {
            response = response.header(header::CONTENT_ENCODING, "br");
        }
        response = response
            .header(header::CONTENT_TYPE, asset.media_type)
            .header(header::CONTENT_LENGTH, bytes.len());
        if head_only { Body::empty() } else { Body::from(bytes.clone()) }
    };
    response.body(body).unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, ""))
}

/// Whether an Accept-Encoding takes Brotli: named, and not with weight 0.
fn accepts_brotli(value: &str) -> bool {
    value.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("br"));
        let refused = parts
            .filter_map(|part| part.strip_prefix("q="))
            .any(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0));
        named && !refused
    })
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> (tempfile::TempDir, Site) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("index.html", "<p>"), ("a.wasm", "plain"), ("a.wasm.br", "small")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let site = Site::read(dir.path()).unwrap();
        (dir, site)
    }

    fn get(
        site: &Site,
        prefix: &str,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Response<Body> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        answer(site, prefix, &Method::GET, path, &map)
    }

    fn header<'r>(response: &'r Response<Body>, name: &str) -> &'r str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[test]
    fn files_come_with_type_tag_and_rules() {
        let (_dir, site) = site();
        let page = get(&site, "/", "/", &[]);
        assert_eq!(page.status(), 200);
        assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
        assert!(header(&page, "content-security-policy").starts_with("default-src 'none'"));
        let plain = get(&site, "/", "/a.wasm", &[("accept-encoding", "gzip, br;q=0")]);
        assert_eq!(
            (header(&plain, "content-encoding"), header(&plain, "content-length")),
            ("", "5")
        );
        assert_eq!(header(&plain, "content-type"), "application/wasm");
        let small = get(&site, "/", "/a.wasm", &[("accept-encoding", "gzip, br")]);
        assert_eq!(header(&small, "content-encoding"), "br");
        assert_ne!(header(&small, "etag"), header(&plain, "etag"));
        let again = get(&site, "/", "/a.wasm", &[("if-none-match", header(&plain, "etag"))]);
        assert_eq!(again.status(), 304);
        let other = get(&site, "/", "/a.wasm", &[("if-none-match", header(&small, "etag"))]);
        assert_eq!(other.status(), 200);
    }

    #[test]
    fn a_page_below_a_path_is_only_there() {
        let (_dir, site) = site();
        assert_eq!(get(&site, "/sub/", "/sub/a.wasm", &[]).status(), 200);
        assert_eq!(get(&site, "/sub/", "/sub/", &[]).status(), 200);
        assert_eq!(get(&site, "/sub/", "/", &[]).status(), 404);
        assert_eq!(get(&site, "/sub/", "/sub/../Cargo.toml", &[]).status(), 404);
        let redirect = get(&site, "/sub/", "/sub", &[]);
        assert_eq!((redirect.status().as_u16(), header(&redirect, "location")), (308, "/sub/"));
        let posted = answer(&site, "/", &Method::POST, "/", &HeaderMap::new());
        assert_eq!((posted.status().as_u16(), header(&posted, "allow")), (405, "GET, HEAD"));
    }
}
