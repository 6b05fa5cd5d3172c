//! The fields of a line of CSV. No field of a groups file has a line break, so that a quotation mark that nobody closed
//! ends with its line, and does not swallow the lines after it.

use std::borrow::Cow;

use crate::text::TextError;

/// A field without the white space around it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) text: Cow<'a, str>,
    /// The offset of its text, without its quotation mark.
    pub(super) start: usize,
}

/// Splits a line that begins at `offset` into its fields. A quotation mark has a meaning only where a field begins with it.
///
/// # Errors
/// If a quotation mark is not closed, or closed in the middle of a field.
pub(super) fn split<'a>(line: &'a str, offset: usize, fields: &mut Vec<Field<'a>>) -> Result<(), TextError> {
    fields.clear();
    let mut rest = line;
    loop {
        let text = rest.trim_start();
        let start = offset + line.len() - text.len();
        let after = if let Some(quoted) = text.strip_prefix('"') {
            let (text, after) = unquoted(quoted).ok_or_else(|| {
                TextError::new(start, "the quotation mark is not closed on this line; close it, or remove it")
            })?;
            fields.push(Field { text, start: start + 1 });
            let after = after.trim_start();
            if !after.is_empty() && !after.starts_with(',') {
                let reason =
                    "there is text after the closing quotation mark; write \"\" for a quotation mark inside";
                return Err(TextError::new(offset + line.len() - after.len(), reason));
            }
            after
        } else {
            let (text, after) = text.split_at(text.find(',').unwrap_or(text.len()));
            fields.push(Field { text: text.trim_end().into(), start });
            after
        };
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => return Ok(()),
        }
    }
}

/// Returns the text up to the closing quotation mark, and what follows that. Two of them are one inside the text.
fn unquoted(quoted: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut text = Cow::Borrowed("");
    let mut rest = quoted;
    loop {
        let (part, after) = rest.split_once('"')?;
        text += part;
        match after.strip_prefix('"') {
            Some(after) => {
                text += "\"";
                rest = after;
            }
            None => return Some((trimmed(text), after)),
        }
    }
}

fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => text.trim().into(),
        Cow::Owned(text) => text.trim().to_owned().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> Result<Vec<(String, usize)>, usize> {
        let mut fields = Vec::new();
        split(line, 100, &mut fields).map_err(|error| error.offset - 100)?;
        Ok(fields.into_iter().map(|it| (it.text.into_owned(), it.start - 100)).collect())
    }

    #[test]
    fn a_line_is_split_at_commas_outside_quotation_marks() {
        let expected = |fields: &[(&str, usize)]| -> Result<Vec<(String, usize)>, usize> {
            Ok(fields.iter().map(|&(text, start)| (text.to_owned(), start)).collect())
        };
        for (line, found) in [
            ("", &[("", 0)][..]),
            (" a , b c ", &[("a", 1), ("b c", 5)]),
            ("a,", &[("a", 0), ("", 2)]),
            (",, ", &[("", 0), ("", 1), ("", 3)]),
            ("\"a, b\" , \" c\"", &[("a, b", 1), ("c", 10)]),
            ("\"say \"\"hi\"\"\",\"\"", &[("say \"hi\"", 1), ("", 14)]),
            ("19\" rack,ä", &[("19\" rack", 0), ("ä", 9)]),
        ] {
            assert_eq!(fields(line), expected(found), "{line}");
        }
    }

    #[test]
    fn unclosed_quote_is_an_error_where_it_opens() {
        for (line, offset) in [
            ("\"", 0),
            ("a,\"b,c", 2),
            ("a, \"b\"\"", 3),
            ("\"a\"b\"c", 3),
            ("a,\"b\" c", 6),
            ("\"a\"\"\"\"", 0),
        ] {
            assert_eq!(fields(line), Err(offset), "{line}");
        }
    }
}
