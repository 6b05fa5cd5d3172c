//! Drawing the last 15 minutes of a series: how many round-trip times there were of each length, by shades.

use std::collections::BTreeMap;

use ratatui::{Frame, layout::Rect, text::Line, widgets::Paragraph};

use super::table::{Row, padded, time};
use crate::view::{CELL, CELLS, CellAnswer, GroupDetail, SeriesHistory};

/// Few to many. Shades and not colours, so that every eye and every terminal can tell them apart.
const SHADES: [char; 5] = ['.', '░', '▒', '▓', '█'];

/// The width of what stands before a line: the longest round-trip time in it.
const SCALE: usize = 10;

/// Draws what is known of a row.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, row: &Row, past: Option<&GroupDetail>) {
    let lines = match past.and_then(|past| Some((past, find(past, row)?))) {
        Some((past, series)) => lines(row, past.history.time, series, area),
        None => vec![format!("{} {}: nothing in the last 15 minutes", row.cells[0], row.what)],
    };
    frame.render_widget(Paragraph::new(lines.into_iter().map(Line::raw).collect::<Vec<_>>()), area);
}

fn find<'a>(past: &'a GroupDetail, row: &Row) -> Option<&'a SeriesHistory> {
    let (interface, method, matched) = &row.series;
    past.history.series.iter().find(|it| {
        it.interface == *interface && it.method == *method && it.matched.as_deref() == matched.as_deref()
    })
}

fn lines(row: &Row, now: u64, series: &SeriesHistory, area: Rect) -> Vec<String> {
    let mut lines = vec![format!("{} {}", row.cells[0], row.what)];
    if let Some(rtt) = series.cells.last().and_then(|cell| cell.rtt) {
        lines.push(format!(
            "the latest ten seconds: {} samples, min {}, p50 {}, p95 {}, p99 {}, max {}",
            rtt.count,
            time(rtt.min),
            time(rtt.p50),
            time(rtt.p95),
            time(rtt.p99),
            time(rtt.max)
        ));
    }
    let width = usize::from(area.width).saturating_sub(SCALE + 1).min(CELLS as usize);
    let height = usize::from(area.height).saturating_sub(lines.len() + 1);
    let bands = bands(&series.cells, height);
    let most = bands.values().flat_map(BTreeMap::values).copied().max().unwrap_or(1);
    let first = (now / CELL + 1).saturating_sub(width as u64);
    for (bound, counts) in bands.iter().rev() {
        let mut line = padded(&time(*bound), SCALE);
        line.push(' ');
        line.extend((first..first + width as u64).map(|number| shade(counts.get(&number).copied(), most)));
        lines.push(line.trim_end().to_owned());
    }
    let ago = width as u64 * CELL / 60_000_000_000;
    lines.push(format!("{}{ago} min ago, until now; each column ten seconds", " ".repeat(SCALE + 1)));
    lines
}

/// Samples by the highest round-trip time of a band, ns, and by the number of the cell. A band is as many bins as make it fit into so
/// many lines.
fn bands(cells: &[CellAnswer], lines: usize) -> BTreeMap<u64, BTreeMap<u64, u64>> {
    let bounds: Vec<u64> = {
        let all = cells.iter().flat_map(|cell| &cell.histogram).map(|&(bound, _)| bound);
        all.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    };
    let per_band = bounds.len().div_ceil(lines.max(1)).max(1);
    let mut bands: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
    for cell in cells {
        for &(bound, count) in &cell.histogram {
            let Ok(at) = bounds.binary_search(&bound) else { continue };
            let last = (at / per_band * per_band + per_band - 1).min(bounds.len() - 1);
            *bands.entry(bounds[last]).or_default().entry(cell.time / CELL).or_default() += u64::from(count);
        }
    }
    bands
}

/// The shade of a number of samples, by its logarithm: one sample is seen beside thousands.
fn shade(count: Option<u64>, most: u64) -> char {
    match count {
        None | Some(0) => ' ',
        Some(count) => {
            let part = ((count as f64).ln() / (most.max(2) as f64).ln()).clamp(0.0, 1.0);
            SHADES[(part * (SHADES.len() - 1) as f64).round() as usize]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::TrafficAnswer;

    fn cell(number: u64, histogram: &[(u64, u32)]) -> CellAnswer {
        let none = TrafficAnswer::default();
        CellAnswer {
            time: number * CELL,
            rtt: None,
            histogram: histogram.to_vec(),
            sent: none,
            received: none,
        }
    }

    #[test]
    fn every_sample_is_in_one_band_and_no_more_bands_than_lines() {
        let cells: Vec<_> = (0..20).map(|number| cell(number, &[(1000 << number, 3), (5000, 1)])).collect();
        for lines in 1..30 {
            let bands = bands(&cells, lines);
            assert!(bands.len() <= lines, "{} in {lines}", bands.len());
            assert_eq!(bands.values().flat_map(BTreeMap::values).sum::<u64>(), 80);
        }
    }

    #[test]
    fn more_samples_are_darker_and_one_is_seen() {
        assert_eq!(shade(None, 100), ' ');
        let shades: Vec<usize> = [1, 5, 30, 300, 1000]
            .iter()
            .map(|&it| SHADES.iter().position(|shade| *shade == super::shade(Some(it), 1000)).unwrap())
            .collect();
        assert!(shades.is_sorted() && shades[0] == 0 && shades[4] == 4, "{shades:?}");
    }

    #[test]
    fn the_latest_cell_is_the_last_column() {
        let row = Row {
            cells: Default::default(),
            what: String::new(),
            id: String::new(),
            series: (None, String::new(), None),
        };
        let series = SeriesHistory {
            interface: None,
            method: "dns".into(),
            matched: None,
            cells: vec![cell(1000, &[(5_000_000, 9)]), cell(1009, &[(9_000_000, 9)])],
        };
        let lines = lines(&row, 1009 * CELL + 1, &series, Rect::new(0, 0, 31, 8));
        assert_eq!(lines[1], format!("9.00 ms    {}█", " ".repeat(19)));
        assert_eq!(lines[2], format!("5.00 ms    {}█", " ".repeat(10)));
    }
}
