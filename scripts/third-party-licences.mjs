// The licences of the packages in a bundle, as one file beside it.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const LICENCE = /^(?:licen[cs]e|copying|notice)/i;
/** Where a package has its licence only in its readme: from a heading that says so, down to references of links. */
const IN_README = /^(?:#+ *licen[cs]e\b.*|licen[cs]e\n-+)\n[\s\S]*?(?=\n\[[^\]]+\]: |$(?![\s\S]))/im;

/** A plugin of the bundler that writes `fileName`; a package without the text of a licence ends the build. */
export function thirdPartyLicences(fileName) {
  return {
    name: 'third-party-licences',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap(({ moduleIds = [] }) => moduleIds);
      const directories = [...new Set(modules.flatMap(packageOf))].sort();
      this.emitFile({ type: 'asset', fileName, source: directories.map(licenceOf).join('\n') });
    },
  };
}

/** The directory of the package that a module is from, if it is one of node_modules. */
function packageOf(module) {
  const [, directory] = /^(.*[/\\]node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+)[/\\]/.exec(module) ?? [];
  return directory === undefined ? [] : [directory];
}

/** The name, version and licence text of the package in `directory`; throws if it has no licence text. */
export function licenceOf(directory) {
  const read = (file) => readFileSync(path.join(directory, file), 'utf8');
  const { name, version } = JSON.parse(read('package.json'));
  const files = readdirSync(directory).sort();
  const texts = files.filter((file) => LICENCE.test(file)).map(read);
  if (texts.length === 0)
    texts.push(...files.filter((file) => /^readme/i.test(file)).flatMap((file) => read(file).match(IN_README) ?? []));
  const text = texts.map((one) => one.trim()).join('\n\n');
  if (!/copyright|permission is hereby granted|apache license|blue oak/i.test(text)) {
    throw new Error(`${directory} has no text of its licence`);
  }
  return `${'='.repeat(80)}\n${name} ${version}\n\n${text}\n`;
}
