/**
 * The only place that prepares text from outside (faults, error pages, output of programs) for a message: one line,
 * short, without secrets.
 *
 * Of a secret, no more than half is shown, and never eight characters in a row: a session code of 40 characters leaves
 * 33 to be guessed then, and shorter runs are in ordinary words, too. It is found as it is, in either case, and as JSON,
 * XML, URLs, hexadecimal and base64 write it, also with other text around it.
 */
import { JobtailError } from './errors.ts';
import { printable } from './printable.ts';

/** Of each kind but `configured`, the latest are remembered: a server may quote the session before this one. */
type SecretKind = 'sign-in' | 'session' | 'transfer-key' | 'configured';
const KEPT = 8;

const DEFAULT_MAX_CHARACTERS = 200;
/** Text longer than this is not even looked at to its end. */
const MAX_EXAMINED = 2048;
const HIDDEN = '***';

const MAX_RUN = 8;
/** Of short secrets. Runs of fewer characters are in every sentence. */
const MIN_RUN = 4;

/** Words of the program itself hold pieces of a short secret by chance ("FirecREST": "secret"). */
type Author = 'outside' | 'program';
const MIN_RUN_OF: Readonly<Record<Author, number>> = { outside: MIN_RUN, program: MAX_RUN };

/** GUIDs, JSON web tokens, Authorization values and private keys are secrets, whosever they are. */
const LIKE_SECRETS =
  /\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b|\beyJ[\w-]{8,}(?:\.[\w-]*)*|(?<=\bbearer\s{1,16})[^\s"',]+|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*(?:-----END [A-Z ]{0,40}-----)?/gi;

/** Runs of characters by which a secret is known, by their length. */
type Runs = ReadonlyMap<number, ReadonlySet<string>>;

/** The secrets that are in use, and those that were. */
export class Secrets {
  /** The runs of a secret are made when there is a text to look at: most secrets are never quoted. */
  readonly #kept = new Map<SecretKind, Map<string, Map<Author, Runs>>>();
  readonly #max: number;

  constructor(max = KEPT) {
    this.#max = max;
  }

  /** Nothing of `secret` is shown from now on. */
  add(kind: SecretKind, secret: string): void {
    const kept = this.#kept.get(kind) ?? new Map<string, Map<Author, Runs>>();
    this.#kept.set(kind, kept);
    const runs = kept.get(secret) ?? new Map<Author, Runs>();
    kept.delete(secret);
    kept.set(secret, runs);
    const [oldest = ''] = kept.keys();
    if (kept.size > this.#max && kind !== 'configured') kept.delete(oldest);
  }

  /** `text`, which came from outside, with nothing of a secret in it, else as it is. */
  hide(text: string): string {
    return this.#hide(text, 'outside');
  }

  /** `text` with nothing in it that is or looks like a secret. */
  hideAll(text: string): string {
    return this.hide(text).replaceAll(LIKE_SECRETS, HIDDEN);
  }

  /** A message of the program, whose quotes are safe, without any secret of 8 characters or more. */
  hideInMessage(message: string): string {
    return this.#hide(message, 'program');
  }

  #hide(text: string, author: Author): string {
    const known = text === '' ? [] : [...this.#runs(author)];
    if (known.length === 0) return text;
    const folded = fold(text);
    const isHidden = new Uint8Array(text.length);
    for (const [length, sets] of known) {
      for (let at = 0; at + length <= folded.length; at++) {
        const run = folded.slice(at, at + length);
        if (sets.some((set) => set.has(run))) isHidden.fill(1, at, at + length);
      }
    }
    let shown = '';
    for (let at = 0; at < text.length; at++) {
      if (isHidden[at] === 0) shown += text.charAt(at);
      else if (isHidden[at - 1] !== 1) shown += HIDDEN;
    }
    return shown;
  }

  /** Text of another program or host on one line, short and printable, without secrets. */
  safeText(text: string, maxCharacters = DEFAULT_MAX_CHARACTERS): string {
    const line = this.hideAll(text.slice(0, MAX_EXAMINED)).trim().replaceAll(/\s+/g, ' ');
    // Once more: what blanks held apart may stand together now.
    const characters = [...printable(this.hide(line))];
    const cut = characters.slice(0, maxCharacters).join('');
    return characters.length > maxCharacters ? `${cut}...` : cut;
  }

  /** The same error without secrets, for one that quotes programs and remote hosts. */
  hideIn(error: JobtailError): JobtailError {
    const { code, message, hint, retryAfterMs, inPlace, cause } = error;
    const shownMessage = this.hideInMessage(message);
    const shownHint = hint === undefined ? undefined : this.hideInMessage(hint);
    if (shownMessage === message && shownHint === hint) return error;
    // Of the cause, its message and its stack may have the secret, too.
    const { code: systemCode, syscall } = (cause ?? {}) as NodeJS.ErrnoException;
    const options = { hint: shownHint, retryAfterMs, inPlace, cause: { code: systemCode, syscall } };
    return Object.setPrototypeOf(new JobtailError(code, shownMessage, options), Object.getPrototypeOf(error));
  }

  /** Of all secrets, by their length. */
  #runs(author: Author): Map<number, ReadonlySet<string>[]> {
    const all = new Map<number, ReadonlySet<string>[]>();
    for (const kept of this.#kept.values()) {
      for (const [secret, known] of kept) {
        const runs = known.get(author) ?? runsOf(secret, MIN_RUN_OF[author]);
        known.set(author, runs);
        for (const [length, set] of runs) all.set(length, [...(all.get(length) ?? []), set]);
      }
    }
    return all;
  }
}

/** `text` on one line of at most 200 characters, with nothing of `secrets` in it. */
export function safeText(text: string, secrets: readonly string[]): string {
  const known = new Secrets(Number.POSITIVE_INFINITY);
  for (const secret of secrets) known.add('sign-in', secret);
  return known.safeText(text);
}

/** Words of sign-ins in messages of the program: a run of one of them counts only as the whole secret. */
const OWN_WORDS = [
  'authenticateuseropenid',
  'authenticateuserandpassword',
  'authenticateuserpassword',
  'the password of ',
  'passwordfile',
  'passwordcommand',
  'tokenfile',
  'tokencommand',
  'sessioncodefile',
  'external-token',
  'username',
].map(fold);

/** Empty for a secret of fewer characters, which only text from outside can be searched for. */
function runsOf(secret: string, shortest: number): Runs {
  const runs = new Map<number, Set<string>>();
  if (shortest === MAX_RUN && secret.length < MAX_RUN) return runs;
  const isOwn = (run: string) => shortest === MAX_RUN && OWN_WORDS.some((word) => word.includes(run));
  const half = Math.ceil(secret.length / 2);
  const length = Math.min(secret.length, Math.max(shortest, Math.min(half, MAX_RUN)));
  if (length === 0) return runs;
  const whole = fold(secret);
  if (shortest === MAX_RUN) runs.set(whole.length, new Set([whole]));
  const add = (form: string, run: number) => {
    const set = runs.get(run) ?? new Set();
    const folded = fold(form);
    for (let at = 0; at + run <= folded.length; at++) {
      const part = folded.slice(at, at + run);
      if (!isOwn(part)) set.add(part);
    }
    runs.set(run, set);
  };
  add(secret, length);
  if (length < MIN_RUN) return runs;
  add(JSON.stringify(secret).slice(1, -1), length);
  add(encodeURIComponent(secret.toWellFormed()), length);
  for (const signs of [/[&<>]/g, /[&<>"']/g])
    add(
      secret.replaceAll(signs, (sign) => ENTITIES[sign] ?? sign),
      length,
    );
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  add(hex, length * 2);
  add(hex.replaceAll(/../g, '%$&'), length * 3);
  // Depending on how many bytes stand before it, a byte is spread over the characters in one of three ways.
  for (let before = 0; before < 3; before++) {
    const base64 = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    add(base64.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6)), length);
  }
  return runs;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Without what a server may change: the case, and the URL-safe alphabet of base64. As long as the text. */
function fold(text: string): string {
  const lower = text.replaceAll(/[A-Z\u0080-\uffff]/g, (unit) => {
    const changed = unit.toLowerCase();
    return changed.length === 1 ? changed : unit;
  });
  return lower.replaceAll('-', '+').replaceAll('_', '/');
}
