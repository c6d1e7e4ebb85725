/** Lines that somebody chose, by where they begin; both are part of it. */
export interface Selection {
  readonly from: number;
  readonly to: number;
  /** The line that was chosen first. */
  readonly anchor: number;
}

export function selected(now: Selection | undefined, start: number, isExtended: boolean): Selection {
  const anchor = isExtended && now !== undefined ? now.anchor : start;
  return { from: Math.min(anchor, start), to: Math.max(anchor, start), anchor };
}
