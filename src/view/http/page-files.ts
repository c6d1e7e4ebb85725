/** What the page is made of: read once, and handed out by name. Nothing else of the disk can be named. */
import fs from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly packed: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};

export class PageFiles {
  readonly #files = new Map<string, PageFile>();

  constructor(directory: string) {
    for (const name of fs.readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
      const type = TYPES[path.extname(name)];
      const file = path.join(directory, name);
      if (type === undefined || !fs.statSync(file).isFile()) continue;
      const bytes = fs.readFileSync(file);
      this.#files.set(name, { type, bytes, packed: gzipSync(bytes) });
    }
  }

  /** `index.html`, or `assets/NAME`. */
  get(name: string): PageFile | undefined {
    return this.#files.get(name);
  }
}
