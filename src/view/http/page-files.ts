/** The files of the page. */
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { HttpContext } from '../../http/app.ts';
import { Refused } from '../../http/refused.ts';

export function pageFile(context: HttpContext, page: PageFiles, name: string): Response {
  const file = page.get(name);
  if (file === undefined) throw new Refused(404, 'there is nothing at this address');
  const isPacked = /\bgzip\b/.test(context.req.header('accept-encoding') ?? '');
  const headers = {
    'content-type': file.type,
    'cache-control': name === 'index.html' ? 'no-store' : 'private, max-age=31536000, immutable',
    vary: 'accept-encoding',
    ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
  };
  if (!isPacked) return context.body(new Uint8Array(file.bytes), { headers });
  file.packed ??= gzipSync(file.bytes);
  return context.body(new Uint8Array(file.packed), { headers });
}

interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  /** Once it has been requested so. */
  packed?: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export type PageFiles = ReadonlyMap<string, PageFile>;

/** The files of the page, read once and handed out by name. Nothing else of the disk can be named. */
export function pageFilesIn(directory: string): PageFiles {
  const files = new Map<string, PageFile>();
  for (const name of fs.readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const type = TYPES[path.extname(name)];
    const file = path.join(directory, name);
    if (type === undefined || !fs.statSync(file).isFile()) continue;
    files.set(name, { type, bytes: fs.readFileSync(file) });
  }
  return files;
}
