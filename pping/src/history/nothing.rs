//! Why an answer is empty, and what there is to ask for instead.

use super::{
    archive::{Archive, Asked},
    error::Error,
    line::FEWEST,
    time::local,
};
use crate::{
    foreign_text::sanitized,
    spelling::{listed, similar},
};

/// Says why nothing was found, if the worst groups were asked for, or else series.
///
/// # Errors
/// If the history cannot be read.
pub(super) fn reason(archive: &Archive, asked: &Asked, is_worst: bool) -> Result<String, Error> {
    let range = format!("from {} to {}", local(asked.from), local(asked.to));
    let known = archive.known(asked)?;
    if known.groups.is_empty() {
        return Ok(format!("nothing was measured {range}; {}", archive.extent()?));
    }
    let wanted =
        [("group", &asked.group, &known.groups), ("interface", &asked.series.interface, &known.interfaces)];
    for (kind, name, names) in wanted {
        let Some(name) = name.as_deref().filter(|name| !names.contains(*name)) else { continue };
        let (mut best, others) = similar(name, names.iter().map(|it| &**it));
        best.extend(others);
        let known = if best.is_empty() { "none has a name".to_owned() } else { listed(&best) };
        return Ok(format!("no {kind} `{}` was measured {range}; {kind}s: {known}", sanitized(name)));
    }
    Ok(if is_worst {
        format!(
            "no group has {FEWEST} samples of such series {range}, and --worst leaves out those with fewer"
        )
    } else {
        format!("nothing was measured {range} of such series; ask for others")
    })
}
