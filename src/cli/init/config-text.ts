/** The configuration of `agent init`: the answers. */
import { printableJson } from '../../printable.ts';

/** The keys of each section; those without a value are left out. */
export type Keys = Readonly<Record<string, string | null>>;
export type Sections = Readonly<Record<string, Keys>>;

const HEAD = `# Configuration of jobtail (the command \`agent\`), written by \`agent init\`. Try it with \`agent check\`.
# \`agent help configuration\` lists all keys; config.example.yaml explains them.
`;

export function configText(sections: Sections): string {
  const texts = Object.entries(sections).map(([name, keys]) => {
    const given = Object.entries(keys).filter(([, value]) => value !== null);
    // JSON is valid YAML for any text.
    return [`\n${name}:`, ...given.map(([key, value]) => `  ${key}: ${printableJson(value)}`), ''].join('\n');
  });
  return `${HEAD}${texts.join('')}`;
}
