//! The web page, at `/`, and its files. They are part of the binary, so the page loads nothing from elsewhere;
//! CONTRIBUTING.md says how uPlot gets into the binary.

use axum::{
    Router,
    body::Bytes,
    http::{
        HeaderMap, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
            X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
    routing::get,
};

use serde_json::json;

use crate::{
    fingerprint::fingerprint,
    reasons::{LOSSES, UNTRACKED},
};

/// The content security policy: the page may load scripts, styles and images from this server, send requests to it, and
/// do nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The path of the texts that the page shares with `pping top`.
const REASONS: &str = "/assets/reasons.json";

/// A file of `pping/page`.
macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../page/", $name))
    };
}

/// The files: path, content type and content.
const FILES: [(&str, &str, &str); 27] = [
    ("/", HTML, file!("index.html")),
    ("/assets/pping.css", CSS, file!("pping.css")),
    ("/assets/icon.svg", SVG, file!("icon.svg")),
    ("/assets/page.js", SCRIPT, file!("page.js")),
    ("/assets/address.js", SCRIPT, file!("address.js")),
    ("/assets/axis.js", SCRIPT, file!("axis.js")),
    ("/assets/before.js", SCRIPT, file!("before.js")),
    ("/assets/columns.js", SCRIPT, file!("columns.js")),
    ("/assets/controls.js", SCRIPT, file!("controls.js")),
    ("/assets/dom.js", SCRIPT, file!("dom.js")),
    ("/assets/feed.js", SCRIPT, file!("feed.js")),
    ("/assets/format.js", SCRIPT, file!("format.js")),
    ("/assets/head.js", SCRIPT, file!("head.js")),
    ("/assets/health.js", SCRIPT, file!("health.js")),
    ("/assets/heatmap.js", SCRIPT, file!("heatmap.js")),
    ("/assets/lines.js", SCRIPT, file!("lines.js")),
    ("/assets/panels.js", SCRIPT, file!("panels.js")),
    ("/assets/past.js", SCRIPT, file!("past.js")),
    ("/assets/range.js", SCRIPT, file!("range.js")),
    ("/assets/rangeview.js", SCRIPT, file!("rangeview.js")),
    ("/assets/sparkline.js", SCRIPT, file!("sparkline.js")),
    ("/assets/table.js", SCRIPT, file!("table.js")),
    ("/assets/tree.js", SCRIPT, file!("tree.js")),
    ("/assets/worst.js", SCRIPT, file!("worst.js")),
    ("/assets/uplot.js", SCRIPT, UPLOT.script),
    ("/assets/uplot.css", CSS, UPLOT.style),
    ("/assets/uplot.txt", TEXT, UPLOT.licence),
];

/// The library that draws lines.
struct Library {
    script: &'static str,
    style: &'static str,
    licence: &'static str,
}

#[cfg(has_uplot)]
const UPLOT: Library = Library {
    script: file!("vendor/uPlot.iife.min.js"),
    style: file!("vendor/uPlot.min.css"),
    licence: file!("vendor/LICENSE-uPlot"),
};

/// The page notices that uPlot is missing, and says so.
#[cfg(not(has_uplot))]
const UPLOT: Library = Library {
    script: "",
    style: "",
    licence: "This pping was built without uPlot: `cargo xtask setup` fetches it.\n",
};

/// Serves all files of the page, and [`REASONS`].
pub(super) fn router() -> Router {
    let reasons = json!({"losses": LOSSES, "untracked": UNTRACKED}).to_string();
    let reasons = (REASONS, JSON, Bytes::from(reasons));
    let files =
        FILES.map(|(path, content_type, text)| (path, content_type, Bytes::from_static(text.as_bytes())));
    files.into_iter().chain([reasons]).fold(Router::new(), |router, (path, content_type, content)| {
        let tag = format!("\"{:032x}\"", fingerprint(&[&String::from_utf8_lossy(&content)]));
        router.route(
            path,
            get(async move |headers: HeaderMap| serve(content_type, content.clone(), &tag, &headers)),
        )
    })
}

/// Responds with a file, or with 304 if the client has it.
fn serve(content_type: &'static str, content: Bytes, tag: &str, headers: &HeaderMap) -> Response {
    let head = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // The next version of pping may have another page at the same address.
        (CACHE_CONTROL, "no-cache"),
    ];
    let tagged = [(ETAG, tag.to_owned())];
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, head, tagged).into_response();
    }
    (head, tagged, [(CONTENT_TYPE, content_type)], content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_that_is_imported_is_served() {
        let paths = FILES.iter().map(|(path, ..)| *path).chain([REASONS]);
        let served = |name: &str| paths.clone().any(|path| path.strip_prefix("/assets/") == Some(name));
        let mut imports = 0;
        for (path, _, text) in FILES.iter().filter(|(path, ..)| *path != "/assets/uplot.js") {
            for quoted in text.split(['"', '\'']).filter_map(|it| it.strip_prefix("./")) {
                assert!(served(quoted), "{path} imports {quoted}");
                imports += 1;
            }
            for linked in text.split('"').filter_map(|it| it.strip_prefix("assets/")) {
                assert!(served(linked), "{path} links {linked}");
            }
        }
        assert!(imports > 5, "{imports}");
    }

    #[test]
    fn nothing_is_inline_and_no_text_becomes_markup() {
        for (path, _, text) in FILES.iter().filter(|(path, ..)| !path.starts_with("/assets/uplot")) {
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "style=",
                "onclick=",
            ] {
                assert!(!text.contains(forbidden), "{forbidden} in {path}");
            }
        }
    }
}
