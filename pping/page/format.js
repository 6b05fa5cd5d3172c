// Numbers and texts as they are shown: in the words of `pping top`.

// What would turn the direction of writing, or is not seen.
const HARMFUL = /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2060-\u206f]/gu;

/** Text of others, fit to be shown: characters that control or are not seen appear as question marks. */
export function shown(text) {
    return String(text).replace(HARMFUL, "?");
}

/** The beginning of a text, at most so many characters. */
export function cut(text, length) {
    const characters = Array.from(text);
    return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : text;
}

/** A time in ns, in few characters. */
export function time(ns) {
    if (ns < 1e6) return `${(ns / 1e3).toFixed(0)} µs`;
    if (ns < 1e7) return `${(ns / 1e6).toFixed(2)} ms`;
    if (ns < 1e9) return `${(ns / 1e6).toFixed(1)} ms`;
    return `${(ns / 1e9).toFixed(2)} s`;
}

/** A round time in ns, as it stands beside an axis. */
export function tick(ns) {
    const [value, unit] = ns < 1e6 ? [ns / 1e3, "µs"] : ns < 1e9 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
    return `${Number(value.toPrecision(2))} ${unit}`;
}

/** A number, in few characters. */
export function amount(number) {
    for (const [unit, suffix] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
        if (number >= unit) return `${(number / unit).toFixed(1)}${suffix}`;
    }
    return number.toFixed(0);
}

/** A whole number, with its thousands apart. */
export function count(number) {
    return number.toLocaleString("en").replaceAll(",", "\u202f");
}

/** A part of one, in per cent. */
export function share(part) {
    return `${(100 * part).toFixed(1)} %`;
}

/** The time of day of seconds since 1970. */
export function clock(seconds) {
    return new Date(1000 * seconds).toLocaleTimeString("en-GB");
}

/** The side of the box that a series is of. */
export function side(matched) {
    return { ingress: "beyond", egress: "behind" }[matched] ?? "both";
}

/** What a series is known by among others of the same group. */
export function seriesKey({ interface: name, method, matched }) {
    return JSON.stringify([name, method, matched]);
}
