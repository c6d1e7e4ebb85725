/** Requests to the server of this page. Addresses are relative: a reverse proxy may put a path before all of it. */
import type { ContentQuery, LinePlace, LinesQuery, Refusal, RefusalError } from '../contract/addresses.ts';

/** The error of the server, or of the connection to it. */
export class RefusedByView extends Error {
  readonly status: number;
  readonly hint: string | undefined;
  /** The current version of the content, if it is not the requested one. */
  readonly version: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, error: Partial<RefusalError>, retryAfterMs?: number) {
    super(error.message ?? `the server answered with ${status}`);
    this.status = status;
    this.hint = error.hint ?? undefined;
    this.version = error.version;
    this.retryAfterMs = retryAfterMs;
  }
}

type Parameters = Readonly<Record<string, string | number | readonly string[] | undefined>>;

export function address(name: string, parameters: object): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters as Parameters))
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) query.append(key, String(one));
  return `api/${name}?${query}`;
}

type Send = (to: string, signal: AbortSignal | null) => Promise<Response>;
let send: Send = (to, signal) => fetch(to, { signal });

/** From now on, requests are sent with the session of the page (session.ts). */
export function sendBy(how: Send): void {
  send = how;
}

/** An answer that is a success; throws `Refused` for any other. */
export async function ask(to: string, signal?: AbortSignal): Promise<Response> {
  const response = await send(to, signal ?? null);
  if (response.ok) return response;
  const { error = {} } = (await response.json().catch(() => ({}))) as Partial<Refusal>;
  const retryAfter = Number(response.headers.get('retry-after'));
  throw new RefusedByView(response.status, error, retryAfter > 0 ? retryAfter * 1000 : undefined);
}

export async function askJson<T>(to: string, signal?: AbortSignal): Promise<T> {
  return (await (await ask(to, signal)).json()) as T;
}

/** The lines of an answer that is one JSON value a line, as they come; `onPiece` is called also for empty ones. */
export async function* askLines<T>(to: string, signal: AbortSignal, onPiece?: () => void): AsyncGenerator<T> {
  const { body } = await ask(to, signal);
  if (body === null) return;
  let rest = '';
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    onPiece?.();
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield JSON.parse(line) as T;
  }
}

/** A stretch of a content that begins and ends with lines. */
export interface Stretch {
  readonly version: string;
  readonly start: number;
  /** The length of the whole content. */
  readonly total: number;
  readonly beginsLine: boolean;
  readonly line: number | undefined;
  readonly bytes: Uint8Array;
}

export async function askStretch(content: ContentQuery, where: LinesQuery, signal?: AbortSignal): Promise<Stretch> {
  const response = await ask(address('lines', { ...content, ...where }), signal);
  const { headers } = response;
  const line = headers.get('view-line');
  return {
    version: headers.get('view-version') ?? '',
    start: Number(headers.get('view-start')),
    total: Number(headers.get('view-bytes')),
    beginsLine: headers.get('view-begins') === 'line',
    line: line === null ? undefined : Number(line),
    bytes: new Uint8Array(await response.arrayBuffer()),
  };
}

/** Bytes from the first position to before the second one, or fewer if the content ends before. */
export async function askBytes(content: ContentQuery, from: number, to: number): Promise<Uint8Array> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (let at = from; at < to; ) {
    const { bytes } = await askStretch(content, { at, bytes: to - at });
    if (bytes.length === 0) break;
    pieces.push(Uint8Array.from(bytes.subarray(0, to - at)));
    at += bytes.length;
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

export function askPlace(content: ContentQuery, at: { line: number } | { byte: number }, signal?: AbortSignal) {
  return askJson<LinePlace>(address('place', { ...content, ...at }), signal);
}

/** Resolves after so long, or when the signal fires. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
