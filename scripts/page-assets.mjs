// What a page needs beside its script: its styles as one file, its icon, and the document that names all of them by the
// hashes of their content. A browser that kept an older one asks for the new names.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** A plugin of the bundler; `document` holds `{{script}}`, `{{styles}}` and `{{icon}}`, relative to itself. */
export function pageAssets({ document, styles, icon, directory }) {
  return {
    name: 'page-assets',
    generateBundle(_, bundle) {
      const emit = (fileName, source) =>
        this.emitFile({ type: 'asset', fileName: path.posix.join(directory, fileName), source });
      const emitHashed = (name, source) => {
        const hash = createHash('sha256').update(source).digest('base64url').slice(0, 8);
        const { name: stem, ext } = path.parse(name);
        const fileName = `assets/${stem}-${hash}${ext}`;
        emit(fileName, source);
        return fileName;
      };
      const script = Object.values(bundle).find(({ isEntry }) => isEntry).fileName;
      const places = {
        script: path.posix.relative(directory, script),
        styles: emitHashed('page.css', styles.map((file) => readFileSync(file, 'utf8')).join('\n')),
        icon: emitHashed('icon.svg', readFileSync(icon, 'utf8')),
      };
      emit(
        path.basename(document),
        readFileSync(document, 'utf8').replaceAll(/\{\{(\w+)\}\}/g, (_, name) => places[name]),
      );
    },
  };
}
