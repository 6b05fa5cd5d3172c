// Formats numbers and texts, in the words of `pping top`.

// Characters that control, are invisible, or change the direction of writing.
const HARMFUL = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/gu;

/** Makes foreign text fit to be shown: question marks replace characters that control or are invisible. */
export function sanitized(text) {
    return String(text).replace(HARMFUL, "?");
}

/** Returns the beginning of a text, at most this many characters. */
export function cut(text, length) {
    const characters = Array.from(text);
    return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : text;
}

/** Formats a time in ns, in few characters. */
export function time(ns) {
    if (ns < 1e6) return `${(ns / 1e3).toFixed(0)} µs`;
    if (ns < 1e7) return `${(ns / 1e6).toFixed(2)} ms`;
    if (ns < 1e9) return `${(ns / 1e6).toFixed(1)} ms`;
    return `${(ns / 1e9).toFixed(2)} s`;
}

/** Formats a round time in ns, for the side of an axis. */
export function tick(ns) {
    const [value, unit] = ns < 1e6 ? [ns / 1e3, "µs"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
    return `${Number(value.toPrecision(2))} ${unit}`;
}

/** Formats a number, in few characters. */
export function amount(number) {
    for (const [unit, suffix] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
        if (number >= unit) return `${(number / unit).toFixed(1)}${suffix}`;
    }
    return number.toFixed(0);
}

/** Formats a whole number, with its thousands separated. */
export function count(number) {
    return number.toLocaleString("en").replaceAll(",", "\u202f");
}

/** Formats a part of one, in per cent. */
export function share(part) {
    return `${(100 * part).toFixed(1)} %`;
}

/** Formats the time of day of seconds since 1970. */
export function clock(seconds) {
    return new Date(1000 * seconds).toLocaleTimeString("en-GB");
}

/** Formats the day and the time of seconds since 1970. */
export function moment(seconds) {
    const form = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" };
    return new Date(1000 * seconds).toLocaleString("en-GB", form);
}

/** Formats the day of seconds since 1970. */
export function day(seconds) {
    return new Date(1000 * seconds).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** Formats a length of time in seconds. */
export function duration(seconds) {
    const [unit, name] = [[86_400, "d"], [3600, "h"], [60, "min"]].find(([unit]) => seconds >= unit && seconds % unit === 0) ?? [1, "s"];
    return `${seconds / unit} ${name}`;
}

/** Returns the side that a series measures: of the network, if sides are told apart, or else of the interface. */
export function side({ matched, side: ofNetwork }) {
    return ofNetwork ?? { ingress: "beyond", egress: "behind" }[matched] ?? "both";
}

/** Returns the key of a series within its group. */
export function seriesKey({ interface: name, method, matched, side: ofNetwork }) {
    return JSON.stringify([name, method, matched, ofNetwork]);
}
