//! A chart of round-trip times by hour, as SVG.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::history::{HOUR, Moment};

/// The size of a chart with its labels, in pixels.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 220.0;

/// The room for labels on the left and below, in pixels.
const LEFT: f64 = 64.0;
const BELOW: f64 = 24.0;

/// A line: a value per hour, in the order of time.
pub(super) struct Line<'a> {
    /// The class that says how it looks.
    pub(super) class: &'a str,
    /// What it is.
    pub(super) name: &'a str,
    /// The starts of hours, seconds since the Unix epoch, with values in ms.
    pub(super) points: Vec<(Moment, f64)>,
}

/// The room that a label below needs, in pixels.
const LABEL: f64 = 60.0;

/// Draws lines over a range, with labels below it at the moments of `marks`. Hours without a value are gaps.
pub(super) fn chart(
    from: Moment,
    to: Moment,
    description: &str,
    lines: &[Line<'_>],
    marks: &[(Moment, String)],
) -> Markup {
    let highest = lines.iter().flat_map(|line| &line.points).map(|&(_, value)| value).fold(0.0, f64::max);
    let step = nice_step(highest);
    let top = step * (highest / step).ceil().max(1.0);
    let length = to.saturating_sub(from).max(1) as f64;
    let x = |moment: Moment| LEFT + (WIDTH - LEFT) * moment.saturating_sub(from) as f64 / length;
    let y = |value: f64| (HEIGHT - BELOW) * (1.0 - value / top) + 8.0;
    let ticks = (0..).map(|number| f64::from(number) * step).take_while(|&value| value <= top * 1.0001);
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {}", HEIGHT + 16.0)) role="img" aria-label=(description) {
            @for value in ticks {
                line.grid x1=(LEFT) x2=(WIDTH) y1=(number(y(value))) y2=(number(y(value))) {}
                text x=(LEFT - 6.0) y=(number(y(value) + 4.0)) text-anchor="end" { (value) " ms" }
            }
            @for (moment, label) in marks {
                @let x = x(*moment);
                line.grid x1=(number(x)) x2=(number(x)) y1=(number(y(top))) y2=(number(y(0.0))) {}
                @if x + LABEL <= WIDTH { text x=(number(x)) y=(HEIGHT + 8.0) { (label) } }
            }
            @for line in lines {
                path class=(line.class) d=(path(&line.points, &x, &y)) { title { (line.name) } }
            }
        }
    }
}

/// The path of a line, which begins anew after each gap. An hour alone is a short dash.
fn path(points: &[(Moment, f64)], x: &impl Fn(Moment) -> f64, y: &impl Fn(f64) -> f64) -> String {
    let mut path = String::new();
    let mut last: Option<Moment> = None;
    for &(moment, value) in points {
        let is_next = last.is_some_and(|last| moment == last + HOUR);
        let command = if is_next { 'L' } else { 'M' };
        let (x, y) = (number(x(moment + HOUR / 2)), number(y(value)));
        write!(path, "{command}{x} {y}").ok();
        if !is_next {
            path.push_str("h1");
        }
        last = Some(moment);
    }
    path
}

/// A distance between labels: 1, 2 or 5 times a power of ten, for about four of them.
fn nice_step(highest: f64) -> f64 {
    let rough = (highest / 4.0).max(1e-3);
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|it| it * power).find(|&step| step >= rough).unwrap_or(10.0 * power)
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}
