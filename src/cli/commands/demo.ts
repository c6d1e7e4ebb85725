/** `agent demo`. */
export async function demo(_options: { readonly seconds: number }): Promise<void> {}
