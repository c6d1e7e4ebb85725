/** One opened content: its loaded part, the search in it, the selection in it. */
import { effect, signal } from '@preact/signals';
import type { ContentQuery } from '../../contract/addresses.ts';
import { askBytes, askPlace, askStretch, pause, RefusedByView } from '../api.ts';
import { kindsNear, type LineKind } from '../file/numbers.ts';
import { type ByteSource, OpenFile, type Opening } from '../file/open-file.ts';
import { Search } from '../file/search.ts';
import { plainText } from '../text/terminal.ts';
import { counted } from '../text/units.ts';

/** Of chosen lines that are copied. */
const MAX_COPIED_BYTES = 16 * 1024 * 1024;
const NOTICE_MS = 2_000;

/** Selected lines, by where they begin; both are part of it. `anchor`: the line that was selected first. */
interface Selection {
  readonly from: number;
  readonly to: number;
  readonly anchor: number;
}

export class Opened {
  readonly file: OpenFile;
  readonly search: Search;
  readonly isSearching = signal(false);
  readonly wraps = signal(true);
  /** Of the lines that are plotted; undefined if nothing is. */
  readonly kinds = signal<readonly LineKind[] | undefined>(undefined);
  readonly selection = signal<Selection | undefined>(undefined);
  /** The bytes on the screen. */
  readonly seen = signal({ from: 0, to: 0 });
  /** What became of a copy. */
  readonly notice = signal('');
  readonly #content: ContentQuery;
  #noticeTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(content: ContentQuery, opening: Opening) {
    this.#content = content;
    this.file = new OpenFile(browserSource(content), opening);
    this.search = new Search(this.content);
    // The line of a link is marked for the user who opens it.
    if (opening.at !== undefined && !opening.follows) this.#mark(opening.to ?? opening.at, opening.at);
  }

  readonly content = (): ContentQuery => {
    const { version } = this.file.condition.peek();
    return version === undefined ? this.#content : { ...this.#content, version };
  };

  /** Connects the parts with each other; the returned function ends all of it. */
  start(): () => void {
    const { file, search } = this;
    let version: string | undefined;
    const stops = [
      search.current.subscribe((match) => match !== undefined && file.jumpTo(match[0])),
      effect(() => {
        if (search.found.value?.isDone === true) search.grow(file.condition.value.bytes);
      }),
      file.condition.subscribe((now) => {
        if (version !== undefined && now.version !== version) this.#beginAnew();
        version = now.version;
      }),
    ];
    return () => {
      for (const stop of stops) stop();
      search.stop();
      file.close();
    };
  }

  async step(isBack: boolean): Promise<void> {
    await this.search.step(isBack, this.seen.value.from).catch(() => undefined);
  }

  /** Goes to the next line that looks like an error, or to the one before. */
  async stepErrors(isBack: boolean): Promise<void> {
    const query = this.search.query.value;
    if (!this.isSearching.value || query.errors !== true)
      this.search.start({ ...query, text: '', errors: true }, this.seen.value.from, isBack);
    this.isSearching.value = true;
    await this.step(isBack);
  }

  /** A search that was closed before its end begins again. */
  openSearch(): void {
    const { query, found } = this.search;
    if (!this.isSearching.value && found.value?.isDone !== true) this.search.start(query.value, this.seen.value.from);
    this.isSearching.value = true;
  }

  closeSearch(): void {
    this.search.stop();
    this.isSearching.value = false;
  }

  togglePlot(): void {
    this.kinds.value =
      this.kinds.value === undefined ? kindsNear(this.file.window, this.selection.value?.from) : undefined;
  }

  select(start: number, isExtended: boolean): void {
    this.file.pause();
    this.#mark(start, isExtended ? (this.selection.value?.anchor ?? start) : start);
  }

  #mark(start: number, anchor: number): void {
    this.selection.value = { from: Math.min(anchor, start), to: Math.max(anchor, start), anchor };
  }

  /**
   * Goes to the line that the reader typed. False if there is no such line, or where it begins is not known; undefined
   * if the reader went elsewhere meanwhile.
   */
  async goTo(typed: string): Promise<boolean | undefined> {
    const line = Number(typed.replaceAll(/[\s,_]/g, '')) - 1;
    if (!Number.isSafeInteger(line) || line < 0) return false;
    const isLastMove = this.file.beginMove();
    const place = await askPlace(this.content(), { line }).catch(() => undefined);
    if (!isLastMove()) return undefined;
    if (place?.line !== line || place.byte >= place.bytes) return false;
    this.showLine(place.byte);
    return true;
  }

  /** Goes to the line that begins at a byte, and marks it. */
  showLine(byte: number): void {
    this.file.jumpTo(byte);
    this.select(byte, false);
  }

  /** Copies the chosen lines, or those on the screen, as text, and reports it for a moment. */
  async copy(): Promise<void> {
    this.notice.value = await this.#copied().catch((error) =>
      error instanceof RefusedByView ? error.message : 'this browser refuses to copy',
    );
    clearTimeout(this.#noticeTimer);
    this.#noticeTimer = setTimeout(() => {
      this.notice.value = '';
    }, NOTICE_MS);
  }

  /** Copies text, and reports how many lines it has. */
  async #copied(): Promise<string> {
    const chosen = this.selection.value;
    // The window may be elsewhere by now: only the file has the end of the last line.
    const { from, to } =
      chosen === undefined ? this.seen.value : { from: chosen.from, to: await this.file.endOfLine(chosen.to) };
    if (to - from > MAX_COPIED_BYTES) return 'too much to copy: download it';
    const text = plainText(await askBytes(this.content(), from, to));
    await navigator.clipboard.writeText(text);
    return `${counted(text.replace(/\n$/, '').split('\n').length, 'line')} copied`;
  }

  /** The file was rewritten: what was found in it is no more. */
  #beginAnew(): void {
    this.kinds.value = undefined;
    this.selection.value = undefined;
    if (this.isSearching.value) this.search.start(this.search.query.value, 0);
    else this.search.forget();
  }
}

/** Where the bytes of an opened content come from in a browser: the server, and the frames of the screen. */
function browserSource(content: ContentQuery): ByteSource {
  const at = (version: string | undefined) => (version === undefined ? content : { ...content, version });
  return {
    stretch: (where, version, signal) => askStretch(at(version), where, signal),
    place: (place, version, signal) => askPlace(at(version), place, signal),
    frame: () => new Promise((resolve) => requestAnimationFrame(() => resolve())),
    wait: pause,
  };
}
