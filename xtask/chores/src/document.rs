//! Parts of documents that a chore writes and compares, each between a pair of comments.

use std::fs;

use anyhow::{Context as _, Result};

use crate::environment;

/// Returns the text between the markers of a file.
pub fn read_section(file: &str, marker: &str) -> Result<String> {
    let document = read(file)?;
    let (_, section, _) = parts(&document, marker).with_context(|| format!("looking into {file}"))?;
    Ok(section.to_owned())
}

/// Replaces the text between the markers of a file.
pub fn replace(file: &str, marker: &str, text: &str) -> Result<()> {
    let document = read(file)?;
    let (before, _, after) = parts(&document, marker).with_context(|| format!("looking into {file}"))?;
    fs::write(environment::repository().join(file), format!("{before}{text}{after}"))
        .with_context(|| format!("writing {file}"))
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(environment::repository().join(file)).with_context(|| format!("reading {file}"))
}

/// Splits a document into the part up to and including the begin marker, the text, and the rest from the end marker on.
fn parts<'a>(document: &'a str, marker: &str) -> Result<(&'a str, &'a str, &'a str)> {
    let (begin, end) = (format!("<!-- {marker} -->\n"), format!("<!-- /{marker} -->\n"));
    let positions = document.find(&begin).map(|position| position + begin.len()).zip(document.find(&end));
    let (from, to) = positions.filter(|(from, to)| from <= to).with_context(|| {
        format!("there is no `{}` with a `{}` after it", begin.trim_end(), end.trim_end())
    })?;
    Ok((&document[..from], &document[from..to], &document[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_between_markers_is_found() {
        let document = "a\n<!-- x -->\nb\n<!-- /x -->\nc\n";
        let expected = ("a\n<!-- x -->\n", "b\n", "<!-- /x -->\nc\n");
        assert_eq!(parts(document, "x").expect("there are markers"), expected);
        assert!(parts(document, "y").is_err());
    }
}
