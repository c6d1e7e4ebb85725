/** Runs the readers of responses over whole documents, for their tests. */

import fc from 'fast-check';
import { JobtailError } from '../../src/errors.ts';
import type { Operation } from '../../src/operations.ts';
import { Secrets } from '../../src/redact.ts';
import type { Lifted } from '../../src/remote/content/lifted.ts';
import type { Taken, Value } from '../../src/remote/content/values.ts';
import { JsonReader } from '../../src/remote/rest/json-reader.ts';
import { XmlReader } from '../../src/remote/soap/xml-reader.ts';
import { anyCharacter } from './property-runs.ts';
import { NAMESPACE, SOAP_1_1, SOAP_1_2 } from './wire-envelopes.ts';

const MAX_BYTES = 10_000_000;

interface Scanned<Rest> {
  readonly rest: Rest;
  readonly items: readonly Value[];
  /** Of each item, which text is its content. */
  readonly contents: readonly (number | undefined)[];
  readonly texts: readonly Buffer[];
}

export type Cuts = readonly number[] | number;

/** What is taken: contents and items, a file, items alone, or nothing. */
export type Taking = 'parts' | 'file' | 'items' | 'nothing';

/** Collects lifted texts. */
class Collected implements Lifted {
  readonly encoding: Lifted['encoding'];
  readonly texts: Buffer[] = [];
  #pieces: Buffer[] = [];

  constructor(encoding: Lifted['encoding']) {
    this.encoding = encoding;
  }

  begin(): void {
    this.#pieces = [];
  }
  bytes(bytes: Buffer): void {
    this.#pieces.push(Buffer.from(bytes));
  }
  end(): void {
    this.texts.push(Buffer.concat(this.#pieces));
  }
  async flush(): Promise<void> {}
}

interface Reader<Rest> {
  push(chunk: Buffer): void;
  finish(): Rest;
}

function scan<Rest>(
  document: Buffer | string,
  taking: Taking,
  cuts: Cuts,
  readerOf: (taken: Taken) => Reader<Rest>,
): Scanned<Rest> {
  const bytes = Buffer.from(document);
  const places = typeof cuts === 'number' ? Array.from(bytes, (_, index) => index * cuts) : cuts;
  const lifted = new Collected(taking === 'file' ? 'base64' : 'text');
  const items: Value[] = [];
  const contents: (number | undefined)[] = [];
  const onItem = (item: Value, text: number | undefined) => {
    items.push(item);
    contents.push(text);
  };
  const reader = readerOf({
    lifted: taking === 'parts' || taking === 'file' ? lifted : undefined,
    onItem: taking === 'parts' || taking === 'items' ? onItem : undefined,
  });
  let at = 0;
  for (const cut of [...places.filter((position) => position < bytes.length).toSorted((a, b) => a - b), bytes.length]) {
    // A copy, as from the network: nobody may rely on the bytes after the chunk.
    reader.push(Buffer.from(bytes.subarray(at, cut)));
    at = cut;
  }
  return { rest: reader.finish(), items, contents, texts: lifted.texts };
}

/** The document, cut into chunks at the positions `cuts`, or after each so many bytes. */
export function scanJson(document: Buffer | string, taking: Taking, cuts: Cuts = []): Scanned<Value> {
  const { rest, ...scanned } = scan(
    document,
    taking,
    cuts,
    (taken) => new JsonReader({ ...taken, maxBytes: MAX_BYTES }),
  );
  return { rest: rest.value, ...scanned };
}

const TAKING: Partial<Record<Operation, Taking>> = {
  DownloadPartsOfJobFilesFromCluster: 'parts',
  DownloadFileFromCluster: 'file',
  ListChangedFilesForJob: 'items',
  ListJobsForCurrentUser: 'items',
};

/** The same for an envelope; of a fault, the rest is its words. */
export function scanXml(operation: Operation, document: Buffer | string, cuts: Cuts = []): Scanned<Value> {
  const secrets = new Secrets();
  const { rest, ...scanned } = scan(
    document,
    TAKING[operation] ?? 'nothing',
    cuts,
    (taken) => new XmlReader({ ...taken, operation, namespace: NAMESPACE, secrets, maxBytes: MAX_BYTES }),
  );
  return { rest: 'fault' in rest ? rest.fault : rest.value, ...scanned };
}

/** What `read` returns, or the code and the message of its error; any other error is thrown. */
export function attempted<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof JobtailError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/** Texts of the letters of base64 and a few others; `bytes` is what one stands for, undefined if it is no base64. */
export const perhapsBase64 = fc.array(fc.constantFrom(...'AQgw+/=-_* \n'), { maxLength: 12 }).map((letters) => {
  const dense = letters.join('').replace(/[ \n]/g, '');
  const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(dense);
  return { text: letters.join(''), bytes: isBase64 ? Buffer.from(dense, 'base64') : undefined };
});

/** Some characters of a text: how a server may write them, and what they are. */
export interface Written {
  readonly xml: string;
  readonly text: string;
}

const character = fc.oneof(
  fc.constantFrom(...'<>&"\'];#x \t\r\n\x1b\0\b\x7fé\u017e€\uFEFF\uFFFD\uFFFE😀'),
  anyCharacter,
);

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const reference = fc.tuple(character, fc.nat(4)).map(([text, style]): Written => {
  const point = text.codePointAt(0) ?? 0;
  const styles = [
    `#${point}`,
    `#x${point.toString(16)}`,
    `#x00${point.toString(16).toUpperCase()}`,
    `#0${point}`,
    `#${point}`,
  ];
  return { xml: `&${styles[style]};`, text };
});

const named = fc
  .constantFrom(['amp', '&'], ['lt', '<'], ['gt', '>'], ['quot', '"'], ['apos', "'"])
  .map(([name = '', text = '']): Written => ({ xml: `&${name};`, text }));

const plain = fc.array(character, { maxLength: 8 }).map((characters): Written => {
  const text = characters.join('');
  return { xml: escaped(text), text };
});

const cdata = fc.array(character, { maxLength: 8 }).map((characters): Written => {
  const text = characters.join('');
  return { xml: `<![CDATA[${text.replaceAll(']]>', ']]]]><![CDATA[>')}]]>`, text };
});

const unseen = fc
  .constantFrom('<!---->', '<!-- <a> & ]]> -->', '<?a b?>', '<?a?>')
  .map((xml): Written => ({ xml, text: '' }));

/** A text written in any of the ways XML has. */
export const writtenText = fc
  .array(fc.oneof({ weight: 3, arbitrary: plain }, reference, named, cdata, unseen), { maxLength: 6 })
  .map(
    (pieces): Written => ({
      xml: pieces.map(({ xml }) => xml).join(''),
      text: pieces.map(({ text }) => text).join(''),
    }),
  );

/** Bytes as base64, broken into lines or not. */
export const writtenBytes = fc
  .tuple(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(0, 1, 3, 4, 76), fc.constantFrom('\n', '\r\n', ' ', '\t '))
  .map(([bytes, width, space]) => {
    const base64 = Buffer.from(bytes).toString('base64');
    const lines = width === 0 ? [base64] : (base64.match(new RegExp(`.{1,${width}}`, 'g')) ?? []);
    return { xml: lines.join(space), bytes: Buffer.from(bytes) };
  });

/** How a server uses prefixes. */
const style = fc.constantFrom(
  { soap: 'soap', own: '', version: SOAP_1_1 },
  { soap: 'SOAP-ENV', own: 'ns1:', version: SOAP_1_1 },
  { soap: 'env', own: '', version: SOAP_1_2 },
  { soap: 's', own: 'a-b.c:', version: SOAP_1_2 },
);

export interface PartsDocument {
  readonly xml: string;
  /** The text of each entry; null if it is nil or absent. */
  readonly texts: readonly (string | null)[];
}

/** An answer of DownloadPartsOfJobFilesFromCluster. */
export const partsDocument: fc.Arbitrary<PartsDocument> = fc
  .tuple(
    style,
    fc.array(fc.oneof({ weight: 4, arbitrary: writtenText }, fc.constantFrom('nil', 'absent')), { maxLength: 3 }),
  )
  .map(([{ soap, own, version }, contents]) => {
    const operation = 'DownloadPartsOfJobFilesFromCluster';
    const declared = own === '' ? `xmlns="${NAMESPACE}"` : `xmlns:${own.slice(0, -1)}="${NAMESPACE}"`;
    const entries = contents.map((content, index) => {
      const written =
        content === 'absent'
          ? ''
          : content === 'nil'
            ? `<${own}content i:nil="true"/>`
            : `<${own}content>${(content as Written).xml}</${own}content>`;
      return `<${own}JobFileContentExt>${written}<${own}offset>${index}</${own}offset></${own}JobFileContentExt>`;
    });
    const result = `<${own}${operation}Result>${entries.join('\n')}</${own}${operation}Result>`;
    return {
      xml: `<?xml version="1.0" encoding="utf-8"?><${soap}:Envelope xmlns:${soap}="${version}" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><${soap}:Body><${own}${operation}Response ${declared}>${result}</${own}${operation}Response></${soap}:Body></${soap}:Envelope>`,
      texts: contents.map((content) => (typeof content === 'string' ? null : content.text)),
    };
  });

/** Where a document is cut into network chunks: at some places, or after each so many bytes. */
export const cuts: fc.Arbitrary<readonly number[] | number> = fc.oneof(
  fc.array(fc.nat(1500), { maxLength: 6 }),
  fc.integer({ min: 1, max: 40 }),
);
