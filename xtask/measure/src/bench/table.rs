//! Reads the benchmarks' tables back. Each line has a name, and the median, the minimum and the maximum.

use std::fmt;

/// Width of the column of names; the figures follow.
const NAME_WIDTH: usize = 52;

/// Lower figures are within the machine's noise, so no ratio is computed from them.
const NOISE_FLOOR: f64 = 10.0;

/// The medians of each line, one per turn, in the order in which the lines were printed.
#[derive(Debug, Default)]
pub(super) struct Figures(Vec<(String, Vec<f64>)>);

impl Figures {
    /// Adds the figures that one turn printed.
    pub(super) fn add(&mut self, printed: &str) {
        for (name, median) in printed.lines().filter_map(figure) {
            match self.0.iter_mut().find(|(other, _)| other == name) {
                Some((_, medians)) => medians.push(median),
                None => self.0.push((name.to_owned(), vec![median])),
            }
        }
    }

    fn of(&self, name: &str) -> Option<&[f64]> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, medians)| medians.as_slice())
    }
}

/// The name and the median of a line that has three figures.
fn figure(line: &str) -> Option<(&str, f64)> {
    let (name, figures) = line.split_at_checked(NAME_WIDTH)?;
    let figures: Vec<f64> = figures.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let name = name.trim_end();
    (figures.len() == 3 && !name.is_empty()).then(|| (name, figures[0]))
}

/// The medians of a line, before and now.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    name: String,
    before: f64,
    now: f64,
    /// The lowest and the highest ratio of a single turn.
    ratios: (f64, f64),
}

/// Compares the lines that both have, turn by turn.
pub(super) fn compare(before: &Figures, now: &Figures) -> Vec<Line> {
    let lines = now.0.iter().filter_map(|(name, now)| {
        let before = before.of(name)?;
        let ratios = || before.iter().zip(now).map(|(before, now)| now / before);
        let ratios = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(f64::NEG_INFINITY, f64::max));
        Some(Line { name: name.clone(), before: median(before), now: median(now), ratios })
    });
    lines.collect()
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, before, now, ratios: (least, most) } = self;
        write!(formatter, "{name:<NAME_WIDTH$} {before:>8.1} {now:>8.1}")?;
        if *before < NOISE_FLOOR {
            return Ok(());
        }
        write!(formatter, " {:>6.2}  {least:>5.2}-{most:.2}", now / before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
An example, 2 cores, Linux 6.18.0
15 rounds of 50000 runs; ns per packet over an empty program

                                                      median     min     max
reading the clock                                       40.0    27.0    40.0
UDP (ingress)                                           20.0    30.0    41.0
So a core takes 1.0 million SYNs of a flood a second, and nothing else.
";

    #[test]
    fn figures_are_separated_from_their_descriptions() {
        let names: Vec<_> = PRINTED.lines().filter_map(figure).collect();
        assert_eq!(names, [("reading the clock", 40.0), ("UDP (ingress)", 20.0)]);
    }

    #[test]
    fn lines_both_versions_have_are_compared_pair_by_pair() {
        let (mut before, mut now) = (Figures::default(), Figures::default());
        for (clock, udp) in [("40.0", "20.0"), ("30.0", "10.0"), ("50.0", "40.0")] {
            now.add(
                &PRINTED.replace("40.0   ", &format!("{clock}   ")).replace("20.0   ", &format!("{udp}   ")),
            );
            before.add(&PRINTED.replace("UDP", "DNS"));
        }
        let lines = compare(&before, &now);
        assert_eq!(lines.len(), 1);
        assert_eq!(
            lines[0],
            Line { name: "reading the clock".into(), before: 40.0, now: 40.0, ratios: (0.75, 1.25) }
        );
        assert!(lines[0].to_string().ends_with("    40.0     40.0   1.00   0.75-1.25"), "{}", lines[0]);
    }
}
