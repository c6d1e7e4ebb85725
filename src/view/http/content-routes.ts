/** What is asked of one content: bytes, lines, matches and numbers. */

import { get, type HttpContext, type HttpRoute } from '../../http/app.ts';
import { type Limited, Refused } from '../../http/refused.ts';
import { jsonLines, streamed } from '../../http/streams.ts';
import { keyText } from '../../job.ts';
import { errorExpression } from '../../search/errors.ts';
import { type FileContent, piecesOf, windowOf } from '../content/content.ts';
import type { ContentName } from '../content/contents.ts';
import { attachment, previewTypeOf } from '../content/file-types.ts';
import { shapeAt, thinnedRows } from '../content/numbers.ts';
import { expressionPattern, matchesOf, patternOf } from '../content/search.ts';
import type { LinePlace } from '../contract/addresses.ts';
import type { ViewParts } from '../parts.ts';
import { Query } from './query.ts';

const WINDOW = { min: 4 * 1024, usual: 256 * 1024, max: 1024 * 1024 } as const;
/** What a preview may do: nothing but to look as it does. */
const PREVIEW_POLICY = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'";

const NDJSON = { 'content-type': 'application/x-ndjson' } as const;

export function contentRoutes(parts: ViewParts): readonly HttpRoute[] {
  const { contents, indexes } = parts;
  return [
    get('/api/generations', (context) => {
      const query = new Query(context.req.url);
      return context.json(contents.generations(query.job(), query.live()));
    }),
    get('/api/lines', (context) => {
      const query = new Query(context.req.url);
      const bytes = Math.max(WINDOW.min, Math.min(WINDOW.max, query.number('bytes') ?? WINDOW.usual));
      const where = { from: query.number('from'), at: query.number('at'), to: query.number('to') };
      return opened(parts, context, 'windows', (content, end) => {
        const window = windowOf(content, { ...where, bytes });
        const line = indexes.of(indexKey(query.content(), content)).lineOf(content, window.start);
        const headers = {
          'view-version': content.version,
          'view-start': String(window.start),
          'view-bytes': String(content.bytes),
          'view-begins': window.beginsLine ? 'line' : 'within',
          ...(line === undefined ? {} : { 'view-line': String(line) }),
        };
        const length = { 'content-length': String(window.bytes.length), 'content-type': 'application/octet-stream' };
        return streamed(parts, context, [window.bytes], { headers: { ...headers, ...length }, end });
      });
    }),
    get('/api/place', (context) => {
      const query = new Query(context.req.url);
      const [line, byte] = [query.number('line'), query.number('byte')];
      if ((line === undefined) === (byte === undefined)) throw new Refused(400, 'line or byte, and not both');
      return opened(parts, context, 'searches', async (content, end) => {
        const { version, bytes } = content;
        const name = { ...query.content(), version };
        const index = indexes.of(indexKey(name, content));
        try {
          // Counting closes what it is given.
          await indexes.count(indexKey(name, content), contents.open(name), context.req.raw.signal);
          const wanted = line ?? index.lineOf(content, Math.min(byte ?? 0, bytes)) ?? 0;
          const found = Math.min(wanted, index.lines);
          return context.json({
            version,
            line: found,
            byte: index.startOf(content, found) ?? 0,
            bytes,
          } satisfies LinePlace);
        } finally {
          end();
        }
      });
    }),
    get('/api/search', (context) => {
      const query = new Query(context.req.url);
      const pattern = query.flag('errors')
        ? expressionPattern(`(?:${errorExpression(parts.settings.errorPatterns)}).*`)
        : patternOf({
            text: query.text('text') ?? '',
            matchCase: query.flag('case'),
            isExpression: query.flag('regex'),
          });
      const where = { from: query.number('from'), max: query.number('max') };
      return withContent(parts, context, (content) => matchesOf(content, pattern, where));
    }),
    get('/api/numbers', (context) => {
      const query = new Query(context.req.url);
      const like = query.number('like') ?? 0;
      const from = query.number('from') ?? 0;
      return withContent(parts, context, (content) =>
        thinnedRows(content, shapeAt(content, Math.min(like, content.bytes)), Math.min(from, content.bytes)),
      );
    }),
    get('/api/raw', (context) => {
      const isPlain = new Query(context.req.url).flag('plain');
      // Text in a tab, whatever it is: no browser takes it for something else, and it could load nothing.
      return sent(
        parts,
        context,
        ({ name }): Record<string, string> =>
          isPlain
            ? { 'content-type': 'text/plain; charset=utf-8', 'content-security-policy': PREVIEW_POLICY }
            : { 'content-type': 'application/octet-stream', 'content-disposition': attachment(name) },
      );
    }),
    get('/api/preview', (context) => {
      return sent(parts, context, (content) => {
        const type = previewTypeOf(content);
        if (type === undefined) throw new Refused(415, 'this file is only shown as text');
        return { 'content-type': type, 'content-security-policy': PREVIEW_POLICY };
      });
    }),
  ];
}

/** Under which the lines of a version of a content are counted. */
function indexKey(name: ContentName, { version }: FileContent): string {
  return `${name.jobId}/${'live' in name ? keyText(name.live) : `results/${name.result}`}/${version}`;
}

/** Opens the requested content and acquires a slot for it; both are released with the response. */
function opened<Answer extends Response | Promise<Response>>(
  { contents, limits }: ViewParts,
  { req }: HttpContext,
  kind: Limited,
  answer: (content: FileContent, end: () => void) => Answer,
): Answer {
  const name = new Query(req.url).content();
  const release = limits.take(kind);
  let content: FileContent | undefined;
  const end = () => {
    content?.close();
    release();
  };
  try {
    content = contents.open(name);
    return answer(content, end);
  } catch (error) {
    end();
    throw error;
  }
}

/** Lines of JSON about a content that is looked through. */
function withContent(
  parts: ViewParts,
  context: HttpContext,
  make: (content: FileContent) => AsyncIterable<unknown>,
): Response {
  return opened(parts, context, 'searches', (content, end) =>
    streamed(parts, context, jsonLines(make(content)), { headers: NDJSON, end }),
  );
}

/** A content as it is. */
function sent(
  parts: ViewParts,
  context: HttpContext,
  headersOf: (content: FileContent) => Readonly<Record<string, string>>,
): Response {
  return opened(parts, context, 'downloads', (content, end) => {
    const { bytes, version } = content;
    const headers = { ...headersOf(content), 'content-length': String(bytes), 'view-version': version };
    return streamed(parts, context, piecesOf(content, 0, bytes), { headers, end });
  });
}
