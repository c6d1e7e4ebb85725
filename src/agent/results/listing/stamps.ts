/**
 * When the listing said that files of one job were changed, as far as it says so (docs/rest.md 3.3). A file that kept its
 * stamp need not be fetched again, once it was: but one that is rewritten in the moment of the fetch may keep it, so only
 * a second fetch that brought the same shows that the stamp is that of the content. A new process begins anew.
 */
export class Stamps {
  #listed: ReadonlyMap<string, string> = new Map();
  /** Of files that were fetched: the stamp they had then, and whether the fetch before brought the same with it. */
  readonly #fetched = new Map<string, { readonly stamp: string; readonly isProven: boolean }>();

  /** A listing came. */
  list(stamps: ReadonlyMap<string, string> | undefined): void {
    this.#listed = stamps ?? new Map();
    for (const name of this.#fetched.keys()) if (!this.#listed.has(name)) this.#fetched.delete(name);
  }

  /** Whether a fetch would bring what is here. */
  isUnchanged(name: string): boolean {
    const fetched = this.#fetched.get(name);
    return fetched?.isProven === true && fetched.stamp === this.#listed.get(name);
  }

  /** A file was fetched; `isSame`: what came is what came before. */
  fetch(name: string, isSame: boolean): void {
    const stamp = this.#listed.get(name);
    const before = this.#fetched.get(name);
    if (stamp === undefined) this.#fetched.delete(name);
    else this.#fetched.set(name, { stamp, isProven: isSame && before?.stamp === stamp });
  }
}
