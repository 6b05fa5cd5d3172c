// The range of time that is shown: the last 15 minutes, or one of the history.

import { moment } from "./format.js";

/** The ranges to choose from: their names in words, their lengths, and how often they are asked for again, s. */
export const RANGES = {
    "3h": { name: "3 hours", length: 3 * 3600, every: 60 },
    "24h": { name: "24 hours", length: 24 * 3600, every: 60 },
    "7d": { name: "7 days", length: 7 * 86_400, every: 300 },
    "60d": { name: "60 days", length: 60 * 86_400, every: 1800 },
};

/** A week, s. */
export const WEEK = 7 * 86_400;

/** The history has whole minutes, s. */
const MINUTE = 60;

/** How long after its end a minute is in the history at the latest, s. */
const WRITTEN = 5;

/** What stands for anything in a message, characters. */
const SHOWN = 40;

const quoted = (text) => `“${text.slice(0, SHOWN)}”`;

/** Returns the last moment that the history has, rounded to when it is asked for again. */
const latest = (now, every) => Math.floor((now - WRITTEN) / every) * every;

/** Returns a time in an address as seconds since 1970, or NaN. It has a zone: a time of day alone is another moment elsewhere. */
const seconds = (text) => (/(Z|[+-]\d\d:?\d\d)$/.test(text) ? Date.parse(text) / 1000 : NaN);

/** Returns seconds since 1970 as they stand in an address. */
export function absolute(seconds) {
    return new Date(1000 * seconds).toISOString().replace(".000", "");
}

/**
 * Returns the range of a state, whose `from` and `to` are seconds since 1970, or null for the last 15 minutes; and what is
 * wrong with the state, in words, or null.
 */
export function rangeOf(state, { history, time }) {
    const now = time / 1e9;
    const wrong = (problem) => ({ range: null, problem: `${problem} The page shows the last 15 minutes.` });
    const isAbsolute = Boolean(state.from || state.to);
    if (!isAbsolute && !state.range && !state.compare) return { range: null, problem: null };
    if (!history) return wrong("The link is for a range of the past, but this pping keeps no history: --history DIR would.");
    const found = isAbsolute ? between(state, now) : last(state, now);
    if (typeof found === "string") return wrong(found);
    const isKnown = ["", "week"].includes(state.compare);
    const problem = isKnown ? null : `The link asks for a comparison with ${quoted(state.compare)}, which there is not: only with “week”.`;
    return { range: { ...found, isCompared: state.compare === "week" }, problem };
}

/** Returns one of the ranges that end now, or what is wrong. */
function last({ range }, now) {
    if (range === "") return "The last 15 minutes cannot be compared with the week before: choose a longer range.";
    if (!Object.hasOwn(RANGES, range)) {
        return `The link asks for the range ${quoted(range)}, which there is not: only ${Object.keys(RANGES).join(", ")}, or a beginning and an end.`;
    }
    const { name, length, every } = RANGES[range];
    const to = latest(now, every);
    return { from: to - length, to, name: `Last ${name}` };
}

/** Returns the range between two moments, or what is wrong with them. */
function between(state, now) {
    const [from, to] = [state.from, state.to].map(seconds);
    for (const [name, value] of [["from", from], ["to", to]]) {
        if (!state[name]) return `The link has a beginning or an end, but no ${name}.`;
        if (Number.isNaN(value)) return `In the link, ${name} is ${quoted(state[name])}, which is no time like ${absolute(Math.floor(now / MINUTE) * MINUTE)}.`;
    }
    if (from >= to) return "The range ends before it begins.";
    if (from >= now) return "The range is in the future.";
    const first = Math.floor(from / MINUTE) * MINUTE;
    // What is yet to come is asked for as it comes.
    const end = Math.max(first + MINUTE, Math.min(Math.ceil(to / MINUTE) * MINUTE, latest(now, MINUTE)));
    return { from: first, to: end, name: `${moment(from)} to ${moment(to)}` };
}
