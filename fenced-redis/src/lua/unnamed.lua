local first_key, first = 2, 4
