/** A pause that somebody may end: what is said before it begins ends it, too. */
export class Wakeable {
  #isWanted = false;
  #end: () => void = () => {};

  wake(): void {
    this.#isWanted = true;
    this.#end();
  }

  async pause(ms: number): Promise<void> {
    if (!this.#isWanted) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#end = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
    }
    this.#isWanted = false;
  }
}
