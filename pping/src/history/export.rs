//! Copying a range into one file.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use super::{
    archive::Archive,
    counts::HourlyCounts,
    error::Error,
    merge::{Merged, Sum},
    read::{StoredFile, Wanted},
    store::is_history,
    tier::Tier,
    time::Moment,
    upkeep::facts,
    write::NewFile,
};
use crate::quality;

/// Copies the rows of a range, with intervals of a tier or of a coarser one where nothing else is left. Returns their number.
///
/// # Errors
/// If there is no history, a file of it is damaged, or the new file cannot be written.
pub(super) fn export(
    directory: &Path,
    tier: Tier,
    from: Moment,
    to: Moment,
    file: &Path,
) -> Result<u64, Error> {
    check_target(file)?;
    let archive = Archive::new(directory.to_owned());
    let found = archive.find(from, to, tier.step())?;
    if !found.damaged.is_empty() {
        return Err(Error::Unsound { found: String::new(), damaged: found.damaged });
    }
    let labels: BTreeSet<Arc<str>> = found.files.iter().flat_map(StoredFile::labels).map(Arc::from).collect();
    let profiles = quality::load(None).unwrap_or_default();
    let mut output = NewFile::create(file, found.tier.step(), &labels, &profiles)?;
    let mut merged = Merged::new(found.files.iter().map(|file| file.rows(Wanted::default())).collect())?;
    let mut sum = Sum::new(found.tier.step());
    let mut rows = 0;
    while let Some(row) = merged.next()? {
        if !found.range.contains(&row.time) {
            continue;
        }
        if let Some(row) = sum.add(&row) {
            output.push(&row.series, row.time, &row.measured)?;
            rows += 1;
        }
    }
    if let Some(row) = sum.finish() {
        output.push(&row.series, row.time, &row.measured)?;
        rows += 1;
    }
    if rows == 0 {
        return Err(Error::Empty("nothing was measured in this range, so no file is written".to_owned()));
    }
    let mut counts = HourlyCounts::default();
    for file in &found.files {
        counts.add(&file.counts());
    }
    output.complete(facts(found.tier, &[], &counts))?;
    output.publish()?;
    Ok(rows)
}

/// Checks that a file may be written, or replaced.
fn check_target(file: &Path) -> Result<(), Error> {
    let refused = |reason: &str| Err(Error::Usage(format!("{}: {reason}", file.display())));
    if file.symlink_metadata().is_ok_and(|it| !it.is_file()) {
        return refused("this exists and is no regular file; name a new file");
    }
    let absolute = std::path::absolute(file).map_err(|error| Error::write(file, error))?;
    if absolute.ancestors().skip(1).any(is_history) {
        return refused("this is inside a history, whose files pping alone writes; name a file elsewhere");
    }
    Ok(())
}
