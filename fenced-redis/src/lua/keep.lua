redis.call('SET', KEYS[2], ARGV[4] .. answer, 'PX', string.match(ARGV[3], '%d+$'))
