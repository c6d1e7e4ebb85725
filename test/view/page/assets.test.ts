/** What a browser loads: little, all of it from here, and nothing that the policy of the page would refuse. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';

const BUILT = fileURLToPath(new URL('../../../dist/view/page/', import.meta.url));
const MAX_BYTES = 120 * 1024;

const read = (file: string) => fs.readFileSync(path.join(BUILT, file), 'utf8');
const page = read('index.html');
const assets = fs.readdirSync(path.join(BUILT, 'assets'));

describe('the built page', () => {
  it('is at most 120 KiB, gzipped', () => {
    const texts = [page, ...assets.map((file) => read(`assets/${file}`))];
    const bytes = texts.reduce((sum, text) => sum + gzipSync(text).length, 0);
    expect(assets.some((file) => file.endsWith('.js'))).toBe(true);
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
  });

  it('names every asset by its content, relative to itself', () => {
    const named = [...page.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, name = '']) => name);
    expect(named.map((name) => name.replace('assets/', '')).sort()).toEqual([...assets].sort());
    for (const name of named) expect(name).toMatch(/^assets\/[a-z]+-[\w-]{8}\.(?:js|css|svg)$/);
  });

  it('has no script and no style within the document', () => {
    expect(page).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=/i);
  });

  it('asks nobody else for anything', () => {
    const texts = assets.map((file) => read(`assets/${file}`));
    // Names of XML vocabularies, and where a package has its documentation.
    const known = /^https?:\/\/(?:www\.w3\.org\/|github\.com\/|www\.opensource\.org\/)/;
    const addresses = texts.flatMap((text) => text.match(/https?:\/\/[^\s"'`)]+/g) ?? []);
    expect(addresses.filter((address) => !known.test(address))).toEqual([]);
    expect(texts.join('')).not.toMatch(/@import|url\((?!["']?data:)/);
  });

  it('turns no text into markup or code', () => {
    // Preact has a property for it, which nothing here sets.
    const own = fs
      .readdirSync(fileURLToPath(new URL('../../../src/view/page/', import.meta.url)), {
        recursive: true,
        encoding: 'utf8',
      })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) =>
        fs.readFileSync(fileURLToPath(new URL(`../../../src/view/page/${file}`, import.meta.url)), 'utf8'),
      );
    expect(own.join('')).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/);
  });

  it('comes with the licences of what it is made of', () => {
    const licences = read('THIRD-PARTY-LICENSES');
    for (const name of ['preact', '@preact/signals', '@tanstack/virtual-core', 'uplot', 'anser'])
      expect(licences).toMatch(new RegExp(`^${name} [0-9]`, 'm'));
  });
});
