// Makes and changes elements. Text is only ever set as text, so foreign text never becomes markup.

/** Makes an element with a class, properties and children. */
export function el(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (name in element) element[name] = value;
        else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
}

/** Sets the text of an element if it differs, so that a selection in it survives. */
export function write(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute if its value differs, and removes it for null. */
export function mark(element, name, value) {
    if (value === null) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

/**
 * Keeps a child of a parent for each key, in the order of the keys. Children that stay are the same elements as before,
 * and keep the focus.
 */
export class Keyed {
    #parent;
    #make;
    #items = new Map();

    /** `make(key)` gives an object with an `element`. */
    constructor(parent, make) {
        this.#parent = parent;
        this.#make = make;
    }

    /** Returns the objects of these keys. */
    update(keys) {
        const focused = document.activeElement;
        const wanted = new Set(keys);
        for (const [key, item] of this.#items) {
            if (wanted.has(key)) continue;
            item.element.remove();
            item.destroy?.();
            this.#items.delete(key);
        }
        const items = keys.map((key) => {
            if (!this.#items.has(key)) this.#items.set(key, this.#make(key));
            return this.#items.get(key);
        });
        items.forEach(({ element }, index) => {
            const present = this.#parent.children[index];
            if (present !== element) this.#parent.insertBefore(element, present ?? null);
        });
        // A moved element loses the focus.
        if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
        return items;
    }

    /** Returns all objects. */
    items() {
        return [...this.#items.values()];
    }
}
