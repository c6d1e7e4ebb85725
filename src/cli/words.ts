/** The words of a command line, before commander reads them. */

/** Whether the name of a configuration follows. */
export const isConfig = (word = '') => /^(?:-c|--config)$/.test(word);

/** Without the name of a configuration, which stands before or after the command. */
export const withoutConfig = (words: readonly string[]): string[] =>
  words.filter((word, index) => !isConfig(word.replace(/=.*/, '')) && !isConfig(words[index - 1]));

export const commandIn = (words: readonly string[]): string | undefined =>
  withoutConfig(words).find((word) => !word.startsWith('-'));
