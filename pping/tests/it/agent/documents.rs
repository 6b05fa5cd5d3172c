//! Code blocks in the documentation, which tests run.

use std::fs;

use super::monitor::repository;
pub(super) use super::monitoring::stack::replace as replaced;

/// Returns the fenced blocks of a page in this language, in order.
#[track_caller]
pub(super) fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(repository(page)).unwrap();
    let opening = format!("```{language}");
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == opening {
            let indent = line.len() - line.trim_start().len();
            let block = lines.by_ref().take_while(|line| line.trim() != "```");
            found.push(block.map(|line| line.get(indent..).unwrap_or_default().to_owned() + "\n").collect());
        } else if line.trim_start().starts_with("```") {
            // A block in another language.
            lines.by_ref().find(|line| line.trim() == "```");
        }
    }
    found
}

/// Returns the only block of a page in this language that contains `part`.
#[track_caller]
pub(super) fn block(page: &str, language: &str, part: &str) -> String {
    let mut found = blocks(page, language);
    found.retain(|block| block.contains(part));
    assert_eq!(found.len(), 1, "blocks of {page} in {language} with {part}: {found:#?}");
    found.remove(0)
}
