//! Copying a range into one file.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use super::{
    archive::Archive,
    counts::HourlyCounts,
    error::Error,
    merge::{Merged, Sum},
    read::{StoredFile, Wanted},
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
    let archive = Archive::new(directory.to_owned());
    let found = archive.find(from, to, tier.step())?;
    let labels: BTreeSet<Arc<str>> = found.files.iter().flat_map(StoredFile::labels).map(Arc::from).collect();
    let profiles = quality::load(None).unwrap_or_default();
    let mut output = NewFile::create(file, found.tier.step(), &labels, &profiles)?;
    let mut merged = Merged::new(found.files.iter().map(|file| file.rows(Wanted::default())).collect())?;
    let mut sum = Sum::new(found.tier.step());
    let mut rows = 0;
    while let Some(row) = merged.next()? {
        if !(from..to).contains(&row.time) {
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
    let mut counts = HourlyCounts::default();
    for file in &found.files {
        counts.add(&file.counts());
    }
    output.complete(facts(found.tier, &[], &counts))?;
    output.publish()?;
    Ok(rows)
}
