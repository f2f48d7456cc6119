// Elements, without a framework. Nothing here writes style attributes or markup: a strict Content-Security-Policy holds.

/** Makes an element. `attributes` may hold `on` (handlers by event), `data` and ARIA attributes; `null` leaves one out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler)
    } else if (name === 'data') {
      Object.assign(element.dataset, value)
    } else if (value === true) {
      element.setAttribute(name, '')
    } else {
      element.setAttribute(name, value)
    }
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false))
  return element
}

const SVG = 'http://www.w3.org/2000/svg'

/** Makes an SVG element. */
export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value)
  }
  element.append(...children)
  return element
}

export const byId = id => document.getElementById(id)

/** Sets text only where it differs, so that live regions and selections stay quiet. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** Remembers what was drawn last, to draw only what changed. */
export class Memo {
  constructor() {
    this.last = new Map()
  }

  /** Whether `value` differs from what was given for `part` last time. */
  changed(part, value) {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    if (this.last.get(part) === text) return false
    this.last.set(part, text)
    return true
  }

  forget(part) {
    this.last.delete(part)
  }
}

export const reducedMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches
