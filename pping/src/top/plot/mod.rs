//! Draws round-trip times over time as shades, and beside them a histogram.

mod grid;

use ratatui::{
    Frame,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span as Text},
    widgets::Paragraph,
};

pub(super) use self::grid::Range;
use self::grid::{Columns, Figures, Grid, Span, figures};
use super::{
    colors::{Colors, SHADES},
    text::{padded, right, time, width},
};
use crate::recent::{CellAnswer, HistoryAnswer};

/// The width of the text before a line: its longest round-trip time, and the axis.
const SCALE: usize = 10;

/// The least width for the bars of a histogram, with their numbers.
const BARS: usize = 16;

/// The width of a number after its bar.
const NUMBER: usize = 8;

/// The width from which on two series are drawn beside each other.
const BESIDE: u16 = 120;

/// A series, as it is drawn.
#[derive(Debug)]
pub(super) struct Plot<'a> {
    /// The name of the series.
    pub(super) title: String,
    pub(super) cells: &'a [CellAnswer],
}

/// Draws series of a history, with one legend for all of them.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    plots: &[Plot<'_>],
    history: &HistoryAnswer,
    (range, colors): (Range, Colors),
) {
    let span = Span::new(range, history.time, history.cell);
    let legend = u16::from(area.height > 4);
    let room = Rect { height: area.height - legend, ..area };
    let areas = arranged(room, plots.len());
    let drawn: Vec<Drawn<'_>> =
        plots.iter().zip(&areas).map(|(plot, area)| Drawn::new(plot, *area, span)).collect();
    let most = drawn.iter().map(|it| it.grid.most()).max().unwrap_or(0);
    for (it, area) in drawn.iter().zip(areas) {
        frame.render_widget(Paragraph::new(it.lines(range, most, colors)), area);
    }
    if legend > 0 && most > 0 {
        let cells = drawn.first().map_or(1, |it| it.columns.cells as u64);
        let seconds = cells.saturating_mul(history.cell) / 1_000_000_000;
        let area = Rect { y: area.bottom() - 1, height: 1, ..area };
        frame.render_widget(legend_line(most, seconds, colors), area);
    }
}

/// Returns the areas of series: beside each other on a wide screen, below each other on a high one.
fn arranged(area: Rect, count: usize) -> Vec<Rect> {
    if count < 2 {
        return vec![area];
    }
    if area.width >= BESIDE {
        let width = area.width / 2 - 1;
        return vec![Rect { width, ..area }, Rect { x: area.x + area.width - width, width, ..area }];
    }
    let height = area.height / 2;
    if height < 4 {
        return vec![area];
    }
    vec![Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area }]
}

/// A series in its area.
struct Drawn<'a> {
    plot: &'a Plot<'a>,
    figures: Option<Figures>,
    columns: Columns,
    grid: Grid,
    /// The width of the histogram.
    bars: usize,
    width: usize,
}

impl<'a> Drawn<'a> {
    fn new(plot: &'a Plot<'a>, area: Rect, span: Span) -> Self {
        let width = usize::from(area.width).saturating_sub(SCALE);
        let bars = if width > 3 * BARS { BARS } else { 0 };
        let columns = Columns::new(span, width - bars);
        // Without the title and the axis.
        let grid = Grid::new(plot.cells, span, columns, usize::from(area.height).saturating_sub(2));
        // One space separates the two.
        let bars = if bars == 0 { 0 } else { width - columns.total - 1 };
        let figures = figures(plot.cells, span);
        Self { plot, figures, columns, grid, bars: bars.min(3 * BARS), width: area.width.into() }
    }

    fn lines(&self, range: Range, most: u64, colors: Colors) -> Vec<Line<'static>> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut title = vec![Text::styled(self.plot.title.clone(), bold)];
        let Some(figures) = self.figures else {
            title.push(Text::raw(format!("  nothing in the last {} min", range.minutes())));
            return vec![Line::from(title)];
        };
        let room = self.width.saturating_sub(width(&self.plot.title));
        title.push(Text::raw(figures_text(&figures, room)));
        let mut lines = vec![Line::from(title)];
        let totals: Vec<u64> = self.grid.counts.iter().map(|line| line.iter().sum()).collect();
        let longest = totals.iter().copied().max().unwrap_or(1);
        for (number, (counts, total)) in self.grid.counts.iter().zip(&totals).enumerate() {
            let mut line = vec![Text::raw(format!("{} │", right(&self.label(number), SCALE - 2)))];
            line.extend(counts.iter().map(|&count| self.cell(count, most, colors)));
            if self.bars > 0 {
                line.push(Text::raw(" "));
                line.push(Text::styled(bar(*total, longest, self.bars - NUMBER), colors.bar()));
                let number = if *total > 0 { total.to_string() } else { String::new() };
                line.push(Text::raw(right(&number, NUMBER)));
            }
            lines.push(Line::from(line));
        }
        lines.push(Line::raw(self.axis(range)));
        lines
    }

    /// Returns the label of a line: its longest round-trip time. With many lines, every second line has one.
    fn label(&self, line: usize) -> String {
        match self.grid.bound(line) {
            _ if !line.is_multiple_of(2) && self.grid.counts.len() > 8 => String::new(),
            Some(bound) => time(bound),
            None => "longer".to_owned(),
        }
    }

    fn cell(&self, count: u64, most: u64, colors: Colors) -> Text<'static> {
        if count == 0 {
            return Text::raw(" ".repeat(self.columns.wide));
        }
        let (shade, style) = colors.heat(log_share(count, most));
        Text::styled(shade.to_string().repeat(self.columns.wide), style)
    }

    /// Returns the line below, with how long ago it was.
    fn axis(&self, range: Range) -> String {
        let total = self.columns.total;
        let seconds = 60 * range.minutes();
        let ticks: &[u64] = match range {
            _ if total < 24 => &[],
            Range::Minute => &[30],
            Range::FiveMinutes if total < 60 => &[3 * 60],
            Range::FiveMinutes => &[4 * 60, 3 * 60, 2 * 60, 60],
            Range::QuarterHour => &[10 * 60, 5 * 60],
        };
        let mut line = String::new();
        for (number, tick) in [seconds].iter().chain(ticks).enumerate() {
            let at = total as u64 * (seconds - tick) / seconds;
            let unit = if *tick < 60 { format!("{tick} s") } else { format!("{} min", tick / 60) };
            let label = if number == 0 { format!("{unit} ago") } else { unit };
            if line.is_empty() || line.len() < at as usize {
                line = format!("{}{label}", padded(&line, at as usize));
            }
        }
        // `now` replaces the end of the line.
        let line = format!("{}└{}now", " ".repeat(SCALE - 1), padded(&line, total.saturating_sub(3)));
        if self.bars > 0 { format!("{line}{}", right("samples", self.bars + 1)) } else { line }
    }
}

/// Returns the figures that fit.
fn figures_text(figures: &Figures, room: usize) -> String {
    let Figures { count, min, percentiles: [p50, p95, p99], max } = *figures;
    let mut parts = vec![format!("  {count} samples")];
    for (name, value) in [("min", min), ("p50", p50), ("p95", p95), ("p99", p99), ("max", max)] {
        parts.push(format!("  {name} {}", time(value)));
    }
    for spare in [5, 1] {
        if parts.iter().map(String::len).sum::<usize>() > room {
            parts.remove(spare);
        }
    }
    parts.concat()
}

/// Returns a number of samples as a part of the most, by its logarithm, so that one sample is visible beside thousands.
fn log_share(count: u64, most: u64) -> f64 {
    if most <= 1 {
        return 1.0;
    }
    (count as f64).ln() / (most as f64).ln()
}

/// Returns a bar for a part of a width, in eighths of a character.
fn bar(count: u64, most: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (count as f64 / most.max(1) as f64 * width as f64 * 8.0).ceil() as usize;
    let bar = format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
    padded(&bar, width)
}

/// Returns the legend: the least number of samples of each shade.
fn legend_line(most: u64, seconds: u64, colors: Colors) -> Line<'static> {
    let mut line = vec![Text::raw(format!("{}samples in {seconds} s from", " ".repeat(SCALE)))];
    let steps = (SHADES.len() - 1) as f64;
    let mut shown = 0;
    for (number, shade) in SHADES.iter().enumerate() {
        // The number at which the logarithm rounds to this shade.
        let least = if number == 0 || most <= 1 {
            1
        } else {
            (((number as f64 - 0.5) / steps) * (most as f64).ln()).exp().ceil() as u64
        };
        let (drawn, style) = colors.heat(log_share(least.min(most), most));
        // With few samples some shades are never needed.
        if least == shown || least > most || drawn != *shade {
            continue;
        }
        shown = least;
        line.extend([
            Text::raw("  "),
            Text::styled(shade.to_string(), style),
            Text::raw(format!(" {least}")),
        ]);
    }
    if most > shown {
        line.push(Text::raw(format!(" to {most}")));
    }
    Line::from(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::tests::cell;

    #[test]
    fn more_samples_are_fuller_and_one_is_seen() {
        let shades: Vec<usize> = [1, 5, 30, 300, 1000]
            .iter()
            .map(|&count| Colors::None.heat(log_share(count, 1000)).0)
            .map(|shade| SHADES.iter().position(|it| *it == shade).unwrap())
            .collect();
        assert!(shades.is_sorted() && shades[0] == 0 && shades[4] == 4, "{shades:?}");
        assert_eq!(Colors::None.heat(log_share(1, 1)).0, '█');
    }

    #[test]
    fn a_legend_names_the_least_number_of_each_shade() {
        for most in (1..300).chain([1_000_000]) {
            let legend = legend_line(most, 10, Colors::None);
            let text: String = legend.spans.iter().map(|it| it.content.as_ref()).collect();
            let mut words = text.split_whitespace().skip_while(|it| *it != "from").skip(1);
            while let (Some(shade), Some(least)) = (words.next(), words.next()) {
                if shade == "to" {
                    assert_eq!(least.parse(), Ok(most));
                    break;
                }
                let (shade, least) = (shade.chars().next().unwrap(), least.parse().unwrap());
                assert_eq!(Colors::None.heat(log_share(least, most)).0, shade, "{least} of {most}");
                if least > 1 {
                    assert_ne!(Colors::None.heat(log_share(least - 1, most)).0, shade, "{least} of {most}");
                }
            }
            assert!(text.contains('█'), "{text}");
        }
    }

    #[test]
    fn a_bar_is_as_long_as_its_part_and_never_nothing() {
        assert_eq!(bar(0, 100, 4), "    ");
        assert_eq!(bar(100, 100, 4), "████");
        assert_eq!(bar(50, 100, 4), "██  ");
        assert_eq!(bar(1, 1000, 4), "▏   ");
    }

    #[test]
    fn an_axis_says_how_long_ago_and_fits_below_its_columns() {
        let cells = [cell(1000, &[(5_000_000, 9)])];
        let plot = Plot { title: String::new(), cells: &cells };
        for (range, width, expected) in [
            (Range::QuarterHour, 80, "└15 min ago     10 min         5 min       now"),
            (Range::FiveMinutes, 80, "└5 min ago   3 min          now"),
            (Range::QuarterHour, 40, "└15 min ago          5 min  now"),
            (Range::QuarterHour, 20, "└15 min now"),
            (Range::Minute, 40, "└1 min ago      30 s        now"),
        ] {
            let area = Rect::new(0, 0, width, 8);
            let span = Span::new(range, 10_000_000_000_000, 10_000_000_000);
            let drawn = Drawn::new(&plot, area, span);
            let axis = drawn.axis(range);
            assert_eq!(axis.trim_start().trim_end_matches("samples").trim_end(), expected);
        }
    }
}
