//! Lines of blocks that show how a figure changed.

/// The blocks, from the lowest to the highest.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns a line of this width: each block is the highest of some values, relative to the highest of all, and a space
/// stands for values that are missing.
pub(super) fn sparkline(values: &[Option<u64>], width: usize) -> String {
    let highest = values.iter().flatten().max().copied().unwrap_or(0).max(1);
    let block = |values: &[Option<u64>]| match values.iter().flatten().max() {
        None => ' ',
        Some(&value) => {
            let level = (value as f64 / highest as f64 * BLOCKS.len() as f64).ceil() as usize;
            BLOCKS[level.clamp(1, BLOCKS.len()) - 1]
        }
    };
    values.chunks(values.len().div_ceil(width.max(1)).max(1)).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_relative_to_the_highest_and_gaps_stay() {
        let values = [Some(800), Some(100), None, None, Some(401), Some(1), Some(0)];
        assert_eq!(sparkline(&values, 7), "█▁  ▅▁▁");
        // Two values a block: the higher one counts.
        assert_eq!(sparkline(&values, 4), "█ ▅▁");
        assert_eq!(sparkline(&[Some(0)], 3), "▁");
        assert_eq!(sparkline(&[None; 90], 15), " ".repeat(15));
        assert_eq!(sparkline(&[], 15), "");
        assert_eq!(sparkline(&[Some(5); 90], 15), "█".repeat(15));
    }
}
