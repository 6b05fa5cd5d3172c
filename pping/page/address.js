// The state of the page, as it stands after the # of its address: a link shows the same to somebody else.

const DEFAULTS = { sort: "", order: "desc", filter: "", interface: "", side: "", method: "", by: "", under: "" };

/** The range of time, and what it is compared with: links to groups and back keep these. */
const RANGE = { range: "", from: "", to: "", compare: "" };

/** The label of a group in a range: pping may no longer know it by its id. */
const LABEL = "label";

/** How many groups are shown until the user asks for more. */
const LIMIT = 100;

/** The highest number of groups that pping lists at once. */
export const MAX_LIMIT = 1000;

/** The columns that both views of groups sort by, and those of each view alone, the first of which is the default. */
const COMMON = ["group", "packets", "bytes", "retransmissions", "quality"];
const SORTS = {
    series: ["p95", "count", "min", "p50", "p90", "p99"],
    sides: ["inside_p95", "inside_p50", "outside_p50", "outside_p95"],
};

/** The columns that nodes of the tree of groups sort by too. */
const OF_NODES = ["members", "active", "bad"];

/** What each side is in a question. */
export const SIDES = {
    beyond: ["matched", "ingress"], behind: ["matched", "egress"], inside: ["side", "inside"], outside: ["side", "outside"],
};

/** Returns the state that an address describes. Unknown parts are left out. */
export function parse(hash) {
    const [path, query] = hash.replace(/^#/, "").split("?", 2);
    const given = new URLSearchParams(query);
    const state = { group: /^\/groups\/([0-9a-f]+)$/.exec(path)?.[1] ?? null, limit: LIMIT };
    for (const [name, value] of Object.entries({ ...DEFAULTS, ...RANGE })) state[name] = given.get(name) ?? value;
    state.label = (state.group && given.get(LABEL)) ?? "";
    if (!(state.side in SIDES)) state.side = "";
    const limit = Number(given.get("limit"));
    if (Number.isInteger(limit) && limit > LIMIT) state.limit = Math.min(limit, MAX_LIMIT);
    return state;
}

/** Returns the address of a state. Defaults are left out. */
export function format(state) {
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...DEFAULTS, ...RANGE })) {
        if (state[name] !== value) given.set(name, state[name]);
    }
    if (state.group && state.label && isOfPast(state)) given.set(LABEL, state.label);
    if (state.limit > LIMIT) given.set("limit", state.limit);
    const query = given.toString();
    return `#/${state.group ? `groups/${state.group}` : ""}${query && `?${query}`}`;
}

/** Whether a state has a range. */
const isOfPast = ({ range, from, to }) => Boolean(range || from || to);

/** Returns a state with the range of another one. */
export function withRange(state, other) {
    return { ...state, ...Object.fromEntries(Object.keys(RANGE).map((name) => [name, other[name]])) };
}

/** Returns what gives the address of a group's page, in the range of a state. */
export function linkIn(state) {
    const kept = withRange({ ...DEFAULTS, limit: LIMIT }, state);
    return ({ id, group }) => format({ ...kept, group: id, label: group });
}

/** Returns a URL below that of this page, without a password that it may contain. */
export function relativeUrl(path) {
    return new URL(path, location.origin + location.pathname);
}

/** Returns the column that groups are sorted by: that of the state, unless the view does not have it. */
export function sortOf({ sort, by }, view) {
    return [...COMMON, ...SORTS[view], ...(by ? OF_NODES : [])].includes(sort) ? sort : SORTS[view][0];
}

/**
 * Returns the question for the groups of a state, or for the nodes of its level, in a view: `series`, or `sides` if pping tells
 * these apart.
 */
export function groupsUrl(state, view) {
    const url = relativeUrl("api/v1/groups");
    url.searchParams.set("view", view);
    url.searchParams.set("sort", sortOf(state, view));
    for (const name of ["order", "limit"]) url.searchParams.set(name, state[name]);
    for (const name of ["filter", "by", "under"]) if (state[name]) url.searchParams.set(name, state[name]);
    return narrowed(url, state, state.method);
}

/** Returns the question for a group and its last 15 minutes. */
export function groupUrl(state) {
    return relativeUrl(`api/v1/groups/${state.group}`);
}

/** Returns the question for the last 15 minutes of the interfaces, by one method. */
export function historyUrl(state, method) {
    return narrowed(relativeUrl("api/v1/history"), state, method);
}

/** Returns the question for a range: of the interfaces, or of the group with this label. */
export function rangeUrl(state, { from, to }, label) {
    const url = narrowed(relativeUrl("api/v1/history"), state, state.method);
    if (label !== null) url.searchParams.set("group", label);
    return between(url, from, to);
}

/** Returns the question for the worst groups of a range. */
export function worstOfRangeUrl(state, { from, to }) {
    return between(narrowed(relativeUrl("api/v1/history/worst"), state, state.method), from, to);
}

function between(url, from, to) {
    url.searchParams.set("from", from);
    url.searchParams.set("to", to);
    return url;
}

function narrowed(url, state, method) {
    if (state.interface) url.searchParams.set("interface", state.interface);
    if (state.side) url.searchParams.set(...SIDES[state.side]);
    if (method) url.searchParams.set("method", method);
    return url;
}
