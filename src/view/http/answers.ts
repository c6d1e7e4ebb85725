/** Responses: bodies that are made while they are sent, and how a file is downloaded or previewed. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { FileContent } from '../content/content.ts';
import type { PreviewKind } from '../contract/addresses.ts';
import { Refused } from '../refused.ts';

export type ViewEnv = { Bindings: HttpBindings };
export type ViewApp = Hono<ViewEnv>;
export type ViewContext = Context<ViewEnv>;
/** What answers, by the name behind `api/` (contract/addresses.ts). */
export type Routes = Readonly<Record<string, (context: ViewContext) => Response | Promise<Response>>>;

interface FailureListener {
  readonly onFailure: (error: unknown) => void;
}

interface StreamedOptions {
  readonly headers: Readonly<Record<string, string>>;
  /** Called however it ends: also if the page goes before the first piece. */
  readonly end: () => void;
}

/** Makes each piece when the one before was taken. A failure breaks the connection: no part looks like all. */
export function streamed(
  { onFailure }: FailureListener,
  { env }: ViewContext,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { headers, end }: StreamedOptions,
): Response {
  const iterator = Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
  let isCancelled = false;
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      try {
        const { done = false, value } = await iterator.next();
        if (!done) return controller.enqueue(value);
      } catch (error) {
        // What was cancelled ends anyhow.
        if (!isCancelled && !(error instanceof Refused)) onFailure(error);
        if (!isCancelled) env.outgoing.destroy();
      }
      end();
      controller.close();
    },
    async cancel() {
      isCancelled = true;
      end();
      await iterator.return?.();
    },
  };
  const body = new ReadableStream(source, { highWaterMark: 0 });
  return new Response(body, { headers: { 'cache-control': 'no-store', ...headers } });
}

export async function* jsonLines(values: AsyncIterable<unknown>): AsyncGenerator<Uint8Array> {
  for await (const value of values) yield Buffer.from(`${JSON.stringify(value)}\n`);
}

/** Each stream of news looks so often at what it is about. */
const TICK_MS = 100;
/** Keeps an idle stream open, and detects a client that is gone. */
export const HEARTBEAT_MS = 15_000;

/** Lines of JSON until it is over. A slow client gets them together: news is read when the last ones were sent. */
export async function* newsLines(news: () => readonly unknown[], over: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let sentAt = Number.NEGATIVE_INFINITY; !over.aborted; await sleep(TICK_MS)) {
    const lines = news().map((each) => `${JSON.stringify(each)}\n`);
    if (lines.length === 0 && performance.now() - sentAt < HEARTBEAT_MS) continue;
    yield Buffer.from(lines.join('') || '\n');
    sentAt = performance.now();
  }
}

/** What a browser saves it as, whatever it is called (RFC 6266). */
export function attachment(name: string): string {
  const safe = name.toWellFormed().replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}/\\]/gu, '_');
  const ascii = safe.replaceAll(/[^ !#-[\]-~]|["%]/g, '_');
  const encoded = encodeURIComponent(safe).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`;
}

interface KnownType {
  readonly kind: PreviewKind;
  readonly type: string;
  readonly begins: RegExp;
}

const PDF: KnownType = { kind: 'pdf', type: 'application/pdf', begins: /^%PDF-/ };
const JPEG: KnownType = { kind: 'image', type: 'image/jpeg', begins: /^\xff\xd8\xff/ };

const KNOWN: Readonly<Record<string, KnownType>> = {
  avif: { kind: 'image', type: 'image/avif', begins: /^....ftypavi/s },
  bmp: { kind: 'image', type: 'image/bmp', begins: /^BM/ },
  gif: { kind: 'image', type: 'image/gif', begins: /^GIF8[79]a/ },
  jpeg: JPEG,
  jpg: JPEG,
  pdf: PDF,
  png: { kind: 'image', type: 'image/png', begins: /^\x89PNG\r\n/ },
  svg: { kind: 'image', type: 'image/svg+xml', begins: /^(?:\xef\xbb\xbf)?\s*</ },
  webp: { kind: 'image', type: 'image/webp', begins: /^RIFF....WEBP/s },
};

const BEGINNING_BYTES = 64;

const extensionOf = (name: string) => /\.([a-z]{1,5})$/i.exec(name)?.[1]?.toLowerCase() ?? '';

export const previewKindOf = (name: string): PreviewKind => KNOWN[extensionOf(name)]?.kind ?? 'text';

/** Undefined if it is only shown as text. */
export function previewTypeOf(content: FileContent): string | undefined {
  const known = KNOWN[extensionOf(content.name)];
  const beginning = content.read(0, Math.min(content.bytes, BEGINNING_BYTES)).toString('latin1');
  return known?.begins.test(beginning) ? known.type : undefined;
}
