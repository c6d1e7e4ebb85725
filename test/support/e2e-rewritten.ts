/**
 * A live file that is rewritten between the lives of an agent, and what of it must be found beside its mirror after each
 * kill: every generation that was ever seen in the mirror, as far as it was seen.
 */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { type Place, readIfThere } from './e2e-place.ts';

/** What the state says of the live file; `rotation` is set while a new generation is begun. */
interface Committed {
  readonly position: number;
  readonly generation: number;
  readonly rotation: 'copying' | 'copied' | null;
}

/** So much more than the mirror has; a file that looked shorter would have to be looked at for seconds. */
const LONGER_BYTES = 64 * 1024;
const FIRST_BYTES = 512 * 1024;

export class RewrittenFile {
  readonly #place: Place;
  readonly #real: string;
  readonly #mirror: string;
  readonly #contents: Buffer[] = [];
  /** By number of the generation, in order: so many bytes of it were in the mirror at a kill. */
  readonly #seen = new Map<number, number>();
  readonly #keep: number;

  constructor(place: Place, real: string, mirror: string, keep: number) {
    this.#place = place;
    this.#real = real;
    this.#mirror = mirror;
    this.#keep = keep;
  }

  /** The mirror directory. */
  get directory(): string {
    return path.dirname(this.#mirror);
  }

  get mirrorBytes(): number {
    return fs.statSync(this.#mirror, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Whether the mirror is as long as the file. */
  get isMirrored(): boolean {
    return this.mirrorBytes === this.#contents.at(-1)?.length;
  }

  /** Another content from its beginning on, longer than the mirror. */
  rewrite(): void {
    const generation = this.#contents.length;
    const line = (number: number) => `generation ${generation}, line ${number}: žluťoučký kůň 敏捷的棕色狐狸\n`;
    const bytes = Math.max(FIRST_BYTES, this.mirrorBytes + LONGER_BYTES);
    const lines = Math.ceil(bytes / line(0).length);
    this.#contents.push(Buffer.from(Array.from({ length: lines }, (_, number) => line(number)).join('')));
    fs.writeFileSync(this.#real, this.#contents.at(-1) ?? '');
  }

  /** What the state says; it is only looked at. */
  committed(): Committed {
    const db = new Database(path.join(this.#place.state, 'agent.db'), { readonly: true });
    try {
      return db
        .prepare<[], Committed>("SELECT position, generation, rotation FROM live_files WHERE file = 'stdout'")
        .get() as Committed;
    } finally {
      db.close();
    }
  }

  /** After a kill: at which step of a new generation it came; undefined if at none. What was seen has to be there. */
  check(): string | undefined {
    const { rotation, generation, position } = this.committed();
    const mirror = fs.readFileSync(this.#mirror);
    if (mirror.length > 0) {
      const number = this.#generationOf(mirror);
      this.#seen.set(number, Math.max(mirror.length, this.#seen.get(number) ?? 0));
    }
    if (rotation === null && position > mirror.length) throw new Error(`${position} of ${mirror.length} are promised`);
    if (generation > this.#seen.size + 1) throw new Error(`generation ${generation} is made up`);
    const copy = readIfThere(`${this.#mirror}.keeping`);
    const kept = this.#kept();
    const there = [mirror, ...(rotation === 'copied' && copy !== undefined ? [copy] : []), ...kept];
    for (const [number, bytes] of [...this.#seen].slice(-this.#keep)) {
      const wanted = this.#contents[number]?.subarray(0, bytes) ?? mirror;
      if (!there.some((content) => content.subarray(0, bytes).equals(wanted)))
        throw new Error(
          `${bytes} bytes of generation ${number} are lost; ${there.map(({ length }) => length)} are there`,
        );
    }
    for (const content of kept) this.#generationOf(content);
    if (rotation === null) return undefined;
    if (rotation === 'copying') return copy === undefined ? 'begun' : 'copying';
    if (copy !== undefined) return 'copied';
    return mirror.length > 0 ? 'numbered' : 'cut';
  }

  /** In the end the mirror is the file, and what is kept is what was seen, the youngest first. */
  checkEnd(): void {
    this.check();
    const { generation } = this.committed();
    if (!fs.readFileSync(this.#mirror).equals(fs.readFileSync(this.#real))) throw new Error('the mirror is another');
    if (generation !== this.#seen.size) throw new Error(`${this.#seen.size} were seen, and ${generation} counted`);
    const numbers = this.#kept().map((content) => this.#generationOf(content));
    const wanted = [...this.#seen.keys()].reverse().slice(1, this.#keep + 1);
    if (numbers.join() !== wanted.join()) throw new Error(`kept are ${numbers}, and not ${wanted}`);
  }

  /** The old generations, the youngest first. */
  #kept(): Buffer[] {
    const numbers = Array.from({ length: this.#keep + 1 }, (_, index) => index + 1);
    return numbers.flatMap((number) => readIfThere(`${this.#mirror}.${number}`) ?? []);
  }

  #generationOf(bytes: Buffer): number {
    const number = this.#contents.findIndex((content) => content.subarray(0, bytes.length).equals(bytes));
    if (number < 0) throw new Error(`what never was in the file: ${bytes.subarray(0, 100)}`);
    return number;
  }
}
